package server

import (
	"strconv"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// A session's reads should see its own writes before them and none after them, even if all
// requests arrive together.
func TestReadsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	const rounds = 1000
	w := connect(t, startServer(t))
	w.create("/a", nil, proto.ModePersistent)
	var b []byte
	for i := range int32(rounds) {
		b = appendRequest(b, 2*i+1, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: strconv.AppendInt(nil, int64(i), 10), Version: -1})
		b = appendRequest(b, 2*i+2, proto.OpGetData, &proto.GetDataRequest{Path: "/a"})
	}
	go w.write(b)
	zxid := int64(0)
	for i := range int32(rounds) {
		set := w.recv()
		get := w.recv()
		if set.Xid != 2*i+1 || get.Xid != 2*i+2 {
			t.Fatalf("round %d: xids %d, %d", i, set.Xid, get.Xid)
		}
		var resp proto.GetDataResponse
		w.decode(get, &resp)
		if string(resp.Data) != strconv.Itoa(int(i)) || get.Zxid != set.Zxid || set.Zxid <= zxid {
			t.Fatalf("round %d: read %q at zxid %d, written at %d after %d", i, resp.Data, get.Zxid, set.Zxid, zxid)
		}
		zxid = set.Zxid
	}
}

// Every kind of request should keep its place after a write, even if it needs no log or is
// refused.
func TestEverythingKeepsItsPlace(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	var b []byte
	ops := []struct {
		op  proto.Op
		req proto.Record
	}{
		{proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: proto.OpenACL()}},
		{proto.OpExists, &proto.ExistsRequest{Path: "/a"}},
		{proto.OpSetData, nil}, // does not decode
		{proto.OpSync, &proto.SyncRequest{Path: "/"}},
		{proto.OpWhoAmI, nil},
		{proto.OpSetWatches, &proto.SetWatches{Data: []string{}, Exist: []string{}, Child: []string{}}},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/a", Version: -1}},
		{proto.OpGetData, &proto.GetDataRequest{Path: "/a"}},
		{proto.Op(999), nil},
	}
	const rounds = 100
	for i := range int32(rounds) {
		for j, v := range ops[:len(ops)-1] {
			b = appendRequest(b, i*10+int32(j), v.op, v.req)
		}
	}
	b = appendRequest(b, 7777, proto.Op(999), nil)
	b = appendRequest(b, 7778, proto.OpPing, nil) // the server ignores it
	go w.write(b)
	codes := []proto.Code{0, 0, proto.ErrMarshalling, 0, 0, 0, 0, proto.ErrNoNode}
	for i := range int32(rounds) {
		for j, code := range codes {
			if got := w.recv(); got.Xid != i*10+int32(j) || got.Err != code {
				t.Fatalf("round %d, %v: xid %d, %v, want %v", i, ops[j].op, got.Xid, got.Err, code)
			}
		}
	}
	if got := w.recv(); got.Xid != 7777 || got.Err != proto.ErrUnimplemented || got.Zxid != -1 {
		t.Errorf("an unknown operation: %+v", got)
	}
	w.wantClosed()
}

func TestOperationsThatAClientMayNotSend(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for _, op := range []proto.Op{proto.OpNotification, proto.OpError, 10, 999, proto.OpCheck, proto.OpCreateSession, proto.OpDeleteContainer} {
		w := connect(t, s)
		got := w.call(op, &proto.CheckVersionRequest{Path: "/", Version: -1})
		if got.Err != proto.ErrUnimplemented || got.Zxid != -1 {
			t.Errorf("%v: %v, zxid %d", op, got.Err, got.Zxid)
		}
		w.wantClosed()
	}
}

// auth is answered immediately, but not before the replies already made.
func TestAuthOvertakes(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	var b []byte
	const writes = 200
	for i := range int32(writes) {
		b = appendRequest(b, i+1, proto.OpCreate, &proto.CreateRequest{Path: "/a" + strconv.Itoa(int(i)), ACL: proto.OpenACL()})
	}
	b = appendRequest(b, proto.XidAuth, proto.OpAuth, &proto.AuthPacket{Scheme: "digest", Auth: []byte("u:p")})
	b = appendRequest(b, writes+1, proto.OpWhoAmI, nil)
	go w.write(b)
	next, auth := int32(1), false
	for range writes + 1 {
		got := w.recv()
		if got.Xid == proto.XidAuth {
			auth = true
			if got.Zxid != 0 || got.Err != proto.Ok {
				t.Errorf("auth: %+v", got)
			}
			continue
		}
		if got.Xid != next {
			t.Fatalf("reply to xid %d, want %d", got.Xid, next)
		}
		next++
	}
	if !auth {
		t.Error("auth was not answered before the request after it")
	}
	var who proto.WhoAmIResponse
	w.decode(w.recv(), &who)
	if len(who.IDs) != 2 || who.IDs[1] != (proto.ID{Scheme: "digest", ID: "u"}) {
		t.Errorf("whoAmI: %+v", who.IDs)
	}
}

func TestMultiSucceedsOrFailsWhole(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	got := w.must(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/m", ACL: proto.OpenACL()}},
		{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/none", Version: -1}},
	}})
	r := proto.NewReader(got.body)
	var codes []int32
	for {
		var h proto.MultiHeader
		if h.Decode(&r); h.Done || r.Err() != nil {
			break
		}
		codes = append(codes, r.Int())
	}
	if len(codes) != 2 || codes[0] != 0 || codes[1] != int32(proto.ErrNoNode) {
		t.Errorf("a failing multi: %v", codes)
	}
	if got := w.call(proto.OpExists, &proto.ExistsRequest{Path: "/m"}); got.Err != proto.ErrNoNode {
		t.Errorf("the failed multi left a node: %v", got.Err)
	}
	for name, bad := range map[string]*proto.MultiRequest{
		"a read in it":   {Ops: []proto.MultiOp{{Op: proto.OpGetData, Req: &proto.GetDataRequest{Path: "/"}}}},
		"a create mode":  {Ops: []proto.MultiOp{{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: "/m", ACL: proto.OpenACL(), Flags: 9}}}},
		"setACL in it":   {Ops: []proto.MultiOp{{Op: proto.OpSetACL, Req: &proto.SetACLRequest{Path: "/"}}}},
		"a null path":    {Ops: []proto.MultiOp{{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: proto.NullString}}}},
		"ends too early": {Ops: []proto.MultiOp{{Op: proto.OpCheck, Req: &proto.SyncRequest{Path: "/"}}}},
	} {
		if got := w.call(proto.OpMulti, bad); got.Err != proto.ErrMarshalling {
			t.Errorf("multi with %s: %v", name, got.Err)
		}
	}
	w.must(proto.OpMulti, &proto.MultiRequest{})
}
