package server

import (
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/proto"
)

func TestReadsAnswerFromTheTree(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	w.create("/a", []byte("data"), proto.ModePersistent)
	w.create("/a/b", nil, proto.ModePersistent)
	w.create("/a/c", []byte{}, proto.ModeEphemeral)

	data, st := w.get("/a", false)
	if data != "data" || st.NumChildren != 2 || st.DataLength != 4 {
		t.Errorf("getData: %q %+v", data, st)
	}
	var ex proto.ExistsResponse
	w.decode(w.must(proto.OpExists, &proto.ExistsRequest{Path: "/a"}), &ex)
	if ex.Stat != st {
		t.Errorf("exists: %+v, getData said %+v", ex.Stat, st)
	}
	var ch proto.GetChildrenResponse
	w.decode(w.must(proto.OpGetChildren, &proto.GetChildrenRequest{Path: "/a"}), &ch)
	slices.Sort(ch.Children)
	if !slices.Equal(ch.Children, []string{"b", "c"}) {
		t.Errorf("getChildren: %q", ch.Children)
	}
	var ch2 proto.GetChildren2Response
	w.decode(w.must(proto.OpGetChildren2, &proto.GetChildrenRequest{Path: "/a"}), &ch2)
	if len(ch2.Children) != 2 || ch2.Stat != st {
		t.Errorf("getChildren2: %+v", ch2)
	}
	var all proto.GetAllChildrenNumberResponse
	w.decode(w.must(proto.OpGetAllChildrenNumber, &proto.GetAllChildrenNumberRequest{Path: "/a"}), &all)
	if all.Total != 2 {
		t.Errorf("getAllChildrenNumber: %d", all.Total)
	}
	var acl proto.GetACLResponse
	w.decode(w.must(proto.OpGetACL, &proto.GetACLRequest{Path: "/a"}), &acl)
	if !slices.Equal(acl.ACL, proto.OpenACL()) {
		t.Errorf("getACL: %+v", acl.ACL)
	}
	var sync proto.SyncResponse
	w.decode(w.must(proto.OpSync, &proto.SyncRequest{Path: "no such"}), &sync)
	if sync.Path != "no such" {
		t.Errorf("sync: %q", sync.Path)
	}
	var nul proto.GetDataResponse
	w.decode(w.must(proto.OpGetData, &proto.GetDataRequest{Path: "/a/b"}), &nul)
	if nul.Data != nil {
		t.Errorf("null data came back as %q", nul.Data)
	}
	w.decode(w.must(proto.OpGetData, &proto.GetDataRequest{Path: "/a/c"}), &nul)
	if nul.Data == nil {
		t.Error("empty data came back as null")
	}
}

func TestGetEphemeralsMatchesTextPrefix(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	for _, path := range []string{"/ge", "/gex", "/x"} {
		w.create(path, nil, proto.ModeEphemeral)
	}
	for prefix, want := range map[string]int{"/ge": 2, "/": 3, "": 3, proto.NullString: 3, " ": 3, "/\x00": 3, "\t/\x1f": 3, " /ge": 0, "\u00a0": 0, "/none": 0} {
		var resp proto.GetEphemeralsResponse
		w.decode(w.must(proto.OpGetEphemerals, &proto.GetEphemeralsRequest{Prefix: prefix}), &resp)
		if len(resp.Ephemerals) != want {
			t.Errorf("prefix %q: %q, want %d", prefix, resp.Ephemerals, want)
		}
	}
}

func TestMultiRead(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	w.create("/a", []byte("x"), proto.ModePersistent)
	got := w.must(proto.OpMultiRead, &proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpGetData, Req: &proto.GetDataRequest{Path: "/a", Watch: true}},
		{Op: proto.OpGetChildren, Req: &proto.GetChildrenRequest{Path: "/none"}},
		{Op: proto.OpGetChildren, Req: &proto.GetChildrenRequest{Path: "/a"}},
	}})
	r := proto.NewReader(got.body)
	var h proto.MultiHeader
	var data proto.GetDataResponse
	h.Decode(&r)
	data.Decode(&r)
	if h.Op != proto.OpGetData || string(data.Data) != "x" {
		t.Errorf("first: %+v %q", h, data.Data)
	}
	h.Decode(&r)
	if code := r.Int(); h.Op != proto.OpError || h.Err != proto.ErrNoNode || code != int32(proto.ErrNoNode) {
		t.Errorf("second: %+v, code %d", h, code)
	}
	var ch proto.GetChildrenResponse
	h.Decode(&r)
	ch.Decode(&r)
	if h.Op != proto.OpGetChildren || len(ch.Children) != 0 {
		t.Errorf("third: %+v %q", h, ch.Children)
	}
	if h.Decode(&r); !h.Done || r.Err() != nil || r.Len() != 0 {
		t.Errorf("end: %+v, %v, %d bytes left", h, r.Err(), r.Len())
	}
	mixed := w.call(proto.OpMultiRead, &proto.MultiRequest{Ops: []proto.MultiOp{
		{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/a"}}}})
	if mixed.Err != proto.ErrMarshalling || len(mixed.body) != 0 {
		t.Errorf("a write in a multiRead: %v and %d bytes", mixed.Err, len(mixed.body))
	}
	w.set("/a", "no watch was left") // must reads the reply next; an event would come first
}

func TestRefusedReads(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/secret", ACL: []proto.ACL{
		{Perms: proto.PermDelete, ID: proto.ID{Scheme: "world", ID: "anyone"}}}})
	for _, c := range []struct {
		op   proto.Op
		req  proto.Record
		want proto.Code
	}{
		{proto.OpGetData, &proto.GetDataRequest{Path: "/none"}, proto.ErrNoNode},
		{proto.OpGetData, &proto.GetDataRequest{Path: "/secret", Watch: true}, proto.ErrNoAuth},
		{proto.OpGetData, &proto.GetDataRequest{Path: proto.NullString}, proto.ErrMarshalling},
		{proto.OpMultiRead, ops(part(proto.OpGetData, &proto.GetDataRequest{Path: "/"}), part(proto.OpGetChildren, &proto.GetChildrenRequest{Path: proto.NullString})), proto.ErrMarshalling},
		{proto.OpSetWatches, &proto.SetWatches{Data: []string{"/", proto.NullString}, Exist: []string{}, Child: []string{}}, proto.ErrMarshalling},
		{proto.OpSetWatches, &proto.SetWatches{Data: []string{}, Exist: []string{proto.NullString}, Child: []string{}}, proto.ErrMarshalling},
		{proto.OpSetWatches2, &proto.SetWatches2{Data: []string{}, Exist: []string{}, Child: []string{proto.NullString}, Persistent: []string{}, PersistentRecursive: []string{}}, proto.ErrMarshalling},
		{proto.OpGetData, nil, proto.ErrMarshalling},
		{proto.OpExists, &proto.ExistsRequest{Path: "/none"}, proto.ErrNoNode},
		{proto.OpExists, &proto.ExistsRequest{Path: "/secret", Watch: true}, proto.ErrNoAuth},
		{proto.OpExists, &proto.ExistsRequest{Path: "/\x00"}, proto.ErrBadArguments},
		{proto.OpGetChildren, &proto.GetChildrenRequest{Path: "/secret"}, proto.ErrNoAuth},
		{proto.OpGetChildren2, &proto.GetChildrenRequest{Path: "/none/"}, proto.ErrNoNode},
		{proto.OpGetACL, &proto.GetACLRequest{Path: "/secret"}, proto.ErrNoAuth},
		{proto.OpGetACL, &proto.GetACLRequest{Path: "/none"}, proto.ErrNoNode},
		{proto.OpGetAllChildrenNumber, &proto.GetAllChildrenNumberRequest{Path: "/none"}, proto.ErrNoNode},
		{proto.OpAddWatch, &proto.AddWatchRequest{Path: "/a", Mode: 7}, proto.ErrMarshalling},
		{proto.OpCheckWatches, &proto.CheckWatchesRequest{Path: "/a", Type: 9}, proto.ErrMarshalling},
		{proto.OpRemoveWatches, &proto.CheckWatchesRequest{Path: "/a", Type: 3}, proto.ErrNoWatcher},
		{proto.OpSetWatches, &proto.SetWatches{}, proto.ErrMarshalling},
		{proto.OpSetData, &proto.SetDataRequest{Path: proto.NullString}, proto.ErrBadArguments},
		{proto.OpCreate, &proto.DeleteRequest{Path: "/short"}, proto.ErrMarshalling},
		{proto.OpSync, nil, proto.ErrMarshalling},
		{proto.OpReconfig, &proto.ReconfigRequest{Joining: proto.NullString, Leaving: "2", NewMembers: proto.NullString, CurConfigID: -1}, proto.ErrReconfigDisabled},
	} {
		if got := w.call(c.op, c.req); got.Err != c.want || len(got.body) != 0 {
			t.Errorf("%v %+v: %v and %d bytes, want %v", c.op, c.req, got.Err, len(got.body), c.want)
		}
	}
	w.must(proto.OpPing, nil) // still open
}

func TestRepliesCarryZxids(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	first := w.must(proto.OpPing, nil).Zxid
	w.create("/a", nil, proto.ModePersistent)
	if got := w.call(proto.OpDelete, &proto.DeleteRequest{Path: "/none", Version: -1}); got.Zxid != first+2 || got.Err != proto.ErrNoNode {
		t.Errorf("a failed write: zxid %d, want %d; %v", got.Zxid, first+2, got.Err)
	}
	if got := w.call(proto.OpSetData, nil); got.Zxid != first+2 {
		t.Errorf("a write that does not decode: zxid %d, want the last one, %d", got.Zxid, first+2)
	}
	if got := w.must(proto.OpSync, &proto.SyncRequest{Path: "/"}); got.Zxid != first+2 {
		t.Errorf("sync: zxid %d, want %d", got.Zxid, first+2)
	}
	if got := w.call(proto.OpGetData, &proto.GetDataRequest{Path: "/none"}); got.Zxid != first+2 {
		t.Errorf("a failed read: zxid %d, want %d", got.Zxid, first+2)
	}
}

// The hot reads, which a busy server executes most, don't allocate.
func TestReadsDoNotAllocate(t *testing.T) {
	s := startServer(t)
	w := connect(t, s)
	w.create("/a", []byte("data"), proto.ModePersistent)
	w.create("/a/b", nil, proto.ModePersistent)
	var c *conn
	s.clients.each(func(one *conn) { c = one })
	for _, v := range []struct {
		op  proto.Op
		req proto.Record
	}{
		{proto.OpGetData, &proto.GetDataRequest{Path: "/a"}},
		{proto.OpGetData, &proto.GetDataRequest{Path: "/none"}},
		{proto.OpExists, &proto.ExistsRequest{Path: "/a"}},
		{proto.OpGetChildren2, &proto.GetChildrenRequest{Path: "/a"}},
		{proto.OpPing, nil},
	} {
		q := request{c: c, op: v.op, ids: c.session.ids.All(), reads: new(stats.Tally)}
		if v.req != nil {
			q.body = v.req.Append(nil)
		}
		out := make([]byte, 0, 4096)
		if n := testing.AllocsPerRun(100, func() {
			s.tree.RLock()
			out = q.answer(out[:0])
			s.tree.RUnlock()
		}); n != 0 {
			t.Errorf("%v: %v allocations", v.op, n)
		}
	}
}

// The root has two names; under one of them it counts itself.
func TestGetAllChildrenNumberOfTheRoot(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	for path, want := range map[string]int32{"/": 3, "": 4, "/zookeeper": 2} {
		var resp proto.GetAllChildrenNumberResponse
		if w.decode(w.must(proto.OpGetAllChildrenNumber, &proto.GetAllChildrenNumberRequest{Path: path}), &resp); resp.Total != want {
			t.Errorf("%q: %d, want %d", path, resp.Total, want)
		}
	}
}

// A large subtree is counted in several steps, between which writes can be applied.
func TestGetAllChildrenNumberOfManyNodes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	w.create("/a", nil, proto.ModePersistent)
	const children = 12_000
	for first := 0; first < children; first += 2000 {
		parts := make([]proto.MultiOp, 2000)
		for i := range parts {
			parts[i] = part(proto.OpCreate, &proto.CreateRequest{Path: fmt.Sprintf("/a/%d", first+i), ACL: proto.OpenACL()})
		}
		w.must(proto.OpMulti, ops(parts...))
	}
	req := &proto.GetAllChildrenNumberRequest{Path: "/a"}
	var resp proto.GetAllChildrenNumberResponse
	if w.decode(w.must(proto.OpGetAllChildrenNumber, req), &resp); resp.Total != children {
		t.Errorf("%d nodes, want %d", resp.Total, children)
	}
	var c *conn
	s.clients.each(func(one *conn) { c = one })
	q := request{c: c, op: proto.OpGetAllChildrenNumber, ids: c.session.ids.All(), body: req.Append(nil)}
	s.tree.RLock()
	q.prepare()
	s.tree.RUnlock()
	w.create("/a/later", nil, proto.ModePersistent)
	s.tree.RLock()
	reply := q.answer(nil)
	s.tree.RUnlock()
	if got := binary.BigEndian.Uint32(reply[len(reply)-4:]); got != children {
		t.Errorf("%d nodes in the reply, want the earlier count %d", got, children)
	}
}

// The ephemerals are listed before the reply is made, too.
func TestGetEphemeralsOfManyNodes(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	w := connect(t, s)
	const count = 6000
	for first := 0; first < count; first += 2000 {
		parts := make([]proto.MultiOp, 2000)
		for i := range parts {
			parts[i] = part(proto.OpCreate, &proto.CreateRequest{Path: fmt.Sprintf("/e%d", first+i), ACL: proto.OpenACL(), Flags: int32(proto.ModeEphemeral)})
		}
		w.must(proto.OpMulti, ops(parts...))
	}
	for prefix, want := range map[string]int{"/": count, "/e5": 1111, "/none": 0} {
		req := &proto.GetEphemeralsRequest{Prefix: prefix}
		var resp proto.GetEphemeralsResponse
		w.decode(w.must(proto.OpGetEphemerals, req), &resp)
		if slices.Sort(resp.Ephemerals); len(slices.Compact(resp.Ephemerals)) != want {
			t.Errorf("%q: %d, want %d", prefix, len(resp.Ephemerals), want)
		}
	}
	var c *conn
	s.clients.each(func(one *conn) { c = one })
	q := request{c: c, op: proto.OpGetEphemerals, ids: c.session.ids.All(), body: (&proto.GetEphemeralsRequest{Prefix: "/e"}).Append(nil)}
	s.tree.RLock()
	q.prepare()
	s.tree.RUnlock()
	w.must(proto.OpDelete, &proto.DeleteRequest{Path: "/e5", Version: -1})
	s.tree.RLock()
	reply := q.answer(nil)
	s.tree.RUnlock()
	var header proto.ReplyHeader
	var resp proto.GetEphemeralsResponse
	r := proto.AliasReader(reply[proto.LengthSize:])
	header.Decode(&r)
	if resp.Decode(&r); r.Err() != nil || header.Zxid != s.tree.LastZxid() {
		t.Fatalf("%v, zxid %x", r.Err(), header.Zxid)
	}
	if slices.Contains(resp.Ephemerals, "/e5") || len(resp.Ephemerals) != count-1 {
		t.Errorf("%d paths: the reply has the zxid of a state without /e5", len(resp.Ephemerals))
	}
}
