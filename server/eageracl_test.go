package server

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// With enableEagerACLCheck, the server that receives a write without permission answers
// it with zxid 0, and it is no transaction. A write that a request in flight may permit
// is not checked.
func TestEagerACLCheck(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 1, func(c *Config) { c.Auth.EagerACL, c.Quorum.Ensemble = true, true })
	s := e.servers[0]
	w := connect(t, s)
	readOnly := []proto.ACL{{Perms: proto.PermRead | proto.PermAdmin, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
	bad := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "ip", ID: "nonsense"}}}
	w.must(proto.OpCreate, &proto.CreateRequest{Path: "/a", ACL: readOnly})
	before := s.lastZxid()
	for _, step := range []struct {
		op   proto.Op
		req  proto.Record
		want proto.Code
	}{
		{proto.OpSetData, setA("x"), proto.ErrNoAuth},
		{proto.OpCreate, &proto.CreateRequest{Path: "/a/b", ACL: proto.OpenACL()}, proto.ErrNoAuth},
		{proto.OpCreate2, &proto.CreateRequest{Path: "/a/b", ACL: proto.OpenACL()}, proto.ErrNoAuth},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/a/b", Version: -1}, proto.ErrNoAuth},
		{proto.OpCreate, &proto.CreateRequest{Path: "/c", ACL: bad}, proto.ErrInvalidACL},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/a", ACL: bad, Version: -1}, proto.ErrInvalidACL},
	} {
		if got := w.call(step.op, step.req); got.Err != step.want || got.Zxid != 0 || len(got.body) != 0 {
			t.Errorf("%v: %+v, want %v", step.op, got, step.want)
		}
	}
	if now := s.lastZxid(); now != before {
		t.Errorf("%d transactions", now-before)
	}
	// The log decides about missing paths and requests that aren't checked.
	for _, step := range []struct {
		op   proto.Op
		req  proto.Record
		want proto.Code
	}{
		{proto.OpSetData, &proto.SetDataRequest{Path: "/none", Version: -1}, proto.ErrNoNode},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/", Version: -1}, proto.ErrBadArguments},
		{proto.OpCreate, &proto.CreateRequest{Path: "/c", ACL: proto.OpenACL()}, proto.Ok},
	} {
		if got := w.call(step.op, step.req); got.Err != step.want || got.Zxid == 0 {
			t.Errorf("%v: %+v, want %v from the log", step.op, got.ReplyHeader, step.want)
		}
	}
	w.write(append(appendRequest(nil, 1000, proto.OpSetACL, &proto.SetACLRequest{Path: "/a", ACL: proto.OpenACL(), Version: -1}),
		appendRequest(nil, 1001, proto.OpSetData, setA("now I may"))...))
	for range 2 {
		if got := w.recv(); got.Err != proto.Ok {
			t.Errorf("%+v", got.ReplyHeader)
		}
	}
}
