package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// ops returns a multi.
func ops(parts ...proto.MultiOp) *proto.MultiRequest { return &proto.MultiRequest{Ops: parts} }

func part(op proto.Op, req proto.Record) proto.MultiOp { return proto.MultiOp{Op: op, Req: req} }

// The answers to invalid writes, and whether they are transactions, are the same as with the
// real server.
func TestInvalidWrites(t *testing.T) {
	t.Parallel()
	open := proto.OpenACL()
	null := proto.NullString
	noID := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "world", ID: null}}}
	create := func(path string, acl []proto.ACL, flags int32) *proto.CreateRequest {
		return &proto.CreateRequest{Path: path, ACL: acl, Flags: flags}
	}
	noACL := part(proto.OpCreate, create("/x", nil, 0))
	read := part(proto.OpGetData, &proto.GetDataRequest{Path: "/"})
	for name, c := range map[string]struct {
		op   proto.Op
		req  proto.Record
		want proto.Code
		zxid int64 // how many zxids are assigned
	}{
		"create too short":              {proto.OpCreate, &proto.SyncRequest{Path: "/x"}, proto.ErrMarshalling, 0},
		"setACL too short":              {proto.OpSetACL, &proto.SyncRequest{Path: "/x"}, proto.ErrMarshalling, 0},
		"reconfig too short":            {proto.OpReconfig, &proto.SyncRequest{Path: "/x"}, proto.ErrMarshalling, 0},
		"create null":                   {proto.OpCreate, create(null, open, 0), proto.ErrMarshalling, 1},
		"create null, flags 99":         {proto.OpCreate, create(null, open, 99), proto.ErrBadArguments, 1},
		"createTTL null":                {proto.OpCreateTTL, &proto.CreateTTLRequest{Path: null, ACL: open, Flags: 5, TTL: 1}, proto.ErrUnimplemented, 1},
		"delete null":                   {proto.OpDelete, &proto.DeleteRequest{Path: null}, proto.ErrMarshalling, 1},
		"setData null":                  {proto.OpSetData, &proto.SetDataRequest{Path: null}, proto.ErrBadArguments, 1},
		"setACL null":                   {proto.OpSetACL, &proto.SetACLRequest{Path: null, ACL: open}, proto.ErrBadArguments, 1},
		"create for a null id":          {proto.OpCreate, create("/x", noID, 0), proto.ErrMarshalling, 1},
		"setACL for a null id":          {proto.OpSetACL, &proto.SetACLRequest{Path: "/", ACL: noID}, proto.ErrMarshalling, 1},
		"multi too short":               {proto.OpMulti, ops(part(proto.OpCheck, &proto.SyncRequest{Path: "/"})), proto.ErrMarshalling, 1},
		"multi with no end":             {proto.OpMulti, nil, proto.ErrMarshalling, 1},
		"multi with setACL":             {proto.OpMulti, ops(part(proto.OpSetACL, &proto.SetACLRequest{Path: "/"})), proto.ErrMarshalling, 1},
		"multi with a read":             {proto.OpMulti, ops(read), proto.ErrMarshalling, 1},
		"multi with a null path":        {proto.OpMulti, ops(part(proto.OpDelete, &proto.DeleteRequest{Path: null})), proto.ErrMarshalling, 1},
		"multi with mode 7":             {proto.OpMulti, ops(part(proto.OpCreate, create("/x", open, 7))), proto.ErrMarshalling, 1},
		"multi with mode 5":             {proto.OpMulti, ops(part(proto.OpCreate2, create("/x", open, 5))), proto.ErrMarshalling, 1},
		"multi with a null id":          {proto.OpMulti, ops(part(proto.OpCreate, create("/x", noID, 0))), proto.ErrMarshalling, 1},
		"multi with a null id, failing": {proto.OpMulti, ops(part(proto.OpDelete, &proto.DeleteRequest{Path: "/none"}), part(proto.OpCreate, create("/x", noID, 0))), proto.Ok, 1},
		"multi with createTTL, mode 99": {proto.OpMulti, ops(part(proto.OpCreateTTL, &proto.CreateTTLRequest{Path: "/x", ACL: open, Flags: 99})), proto.Ok, 1},
		"multi with createTTL, no ACL":  {proto.OpMulti, ops(part(proto.OpCreateTTL, &proto.CreateTTLRequest{Path: "/x"})), proto.Ok, 1},
		"multi with no ACL":             {proto.OpMulti, ops(noACL), proto.ErrMarshalling, 0},
		"multi with no ACL and a read":  {proto.OpMulti, ops(read, noACL), proto.ErrMarshalling, 0},
		"multi with no ACL, mode 5":     {proto.OpMulti, ops(part(proto.OpCreate, create("/x", nil, 5))), proto.ErrMarshalling, 0},
		"multi with no ACL, mode 7":     {proto.OpMulti, ops(part(proto.OpCreate, create("/x", nil, 7))), proto.ErrMarshalling, 1},
		"multi with mode 5, no ACL":     {proto.OpMulti, ops(part(proto.OpCreate, create("/x", open, 5)), noACL), proto.ErrMarshalling, 1},
		"multi mixed, no ACL":           {proto.OpMulti, ops(part(proto.OpCheck, &proto.CheckVersionRequest{Path: "/"}), read, noACL), proto.ErrMarshalling, 1},
	} {
		w := connect(t, startServer(t))
		before := w.must(proto.OpPing, nil).Zxid
		got := w.call(c.op, c.req)
		if got.Err != c.want || got.Err != proto.Ok && len(got.body) != 0 {
			t.Errorf("%s: %v and %d bytes, want %v", name, got.Err, len(got.body), c.want)
		}
		after := w.must(proto.OpPing, nil).Zxid
		if after-before != c.zxid || got.Zxid != after {
			t.Errorf("%s: zxid %d in the answer, %d after it, want %d and %d more", name, got.Zxid-before, after-before, c.zxid, c.zxid)
		}
		if got := w.call(proto.OpExists, &proto.ExistsRequest{Path: "/x"}); got.Err != proto.ErrNoNode {
			t.Errorf("%s: left a node", name)
		}
	}
}

func TestSyncAnswersThePathItRead(t *testing.T) {
	t.Parallel()
	w := connect(t, startServer(t))
	for path, want := range map[string]string{"/a": "/a", "": "", proto.NullString: proto.NullString, "/\xc0x": "/�x"} {
		w.xid++
		body := proto.AppendInt(nil, int32(len(path)))
		if body = append(body, path...); path == proto.NullString {
			body = proto.AppendInt(nil, -1)
		}
		h := proto.RequestHeader{Xid: w.xid, Op: proto.OpSync}
		w.write(proto.AppendFrame(nil, append(append(h.Append(nil), body...), "after it"...)))
		var resp proto.SyncResponse
		if w.decode(w.recv(), &resp); resp.Path != want {
			t.Errorf("sync %q: %q", path, resp.Path)
		}
	}
}

// FuzzExamine checks that every server can decode each request that enters the log, and that
// a request that decodes isn't rejected.
func FuzzExamine(f *testing.F) {
	open := proto.OpenACL()
	for _, req := range []proto.Record{
		&proto.CreateRequest{Path: "/x", ACL: open}, &proto.CreateTTLRequest{Path: "/x", ACL: open, TTL: 1},
		&proto.SetACLRequest{Path: "/x", ACL: open}, &proto.ReconfigRequest{Joining: "x"},
		ops(part(proto.OpCreate, &proto.CreateRequest{Path: "/x", ACL: open}), part(proto.OpCheck, &proto.CheckVersionRequest{})),
		ops(part(proto.OpGetData, &proto.GetDataRequest{Path: "/x"}), part(proto.OpGetChildren, &proto.GetChildrenRequest{})),
		ops(part(proto.OpGetData, &proto.GetDataRequest{Path: "/x"}), part(proto.OpDelete, &proto.DeleteRequest{})),
		ops(part(proto.OpCreateTTL, &proto.CreateTTLRequest{Flags: 9}), part(proto.OpSetData, &proto.SetDataRequest{})),
	} {
		body := req.Append(nil)
		f.Add(body)
		f.Add(body[:len(body)-1])
		f.Add(append(body, 0))
	}
	f.Add(refusedMulti())
	f.Fuzz(func(t *testing.T, body []byte) {
		for op := proto.OpCreate; op <= proto.OpMultiRead; op++ {
			if op.Kind() != proto.Write {
				continue
			}
			_, err := new(proto.Requests).Decode(op, body)
			_, got, _ := examine(new(proto.Requests), op, body)
			if got == proposable && err != nil {
				t.Errorf("%v: %x is in the log and does not decode: %v", op, body, err)
			}
			if op == proto.OpMulti {
				continue // some requests that decode are refused
			}
			if got == refusedInLog || got == refusedHere && err == nil {
				t.Errorf("%v: %x decodes but is refused (%d)", op, body, got)
			}
		}
	})
}

func TestRefusedMultiDecodes(t *testing.T) {
	t.Parallel()
	if _, got, _ := examine(new(proto.Requests), proto.OpMulti, refusedMulti()); got != proposable {
		t.Errorf("it is itself refused: %d", got)
	}
}

func TestExamineDoesNotAllocate(t *testing.T) {
	var q proto.Requests
	long := ops()
	for range 1000 {
		long.Ops = append(long.Ops, part(proto.OpCreate2, &proto.CreateRequest{Path: "/x", ACL: proto.OpenACL()}))
	}
	for _, c := range []struct {
		op  proto.Op
		req proto.Record
	}{
		{proto.OpCreate, &proto.CreateRequest{Path: "/x", ACL: proto.OpenACL()}},
		{proto.OpSetData, &proto.SetDataRequest{Path: "/x", Data: []byte("x")}},
		{proto.OpMulti, ops(part(proto.OpCheck, &proto.CheckVersionRequest{Path: "/x"}), part(proto.OpDelete, &proto.DeleteRequest{Path: "/x"}))},
		{proto.OpMulti, long},
	} {
		body := c.req.Append(nil)
		if n := testing.AllocsPerRun(100, func() { examine(&q, c.op, body) }); n != 0 {
			t.Errorf("%v: %v allocations", c.op, n)
		}
	}
}
