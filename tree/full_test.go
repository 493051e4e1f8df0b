package tree

import (
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// Under Full, no request should make the tree larger, not even inside a multi. All other
// requests should succeed.
func TestFull(t *testing.T) {
	t.Parallel()
	tr := New()
	zxid := int64(0)
	apply := func(policy Policy, op proto.Op, req proto.Record) *Result {
		zxid++
		return tr.Apply(&Txn{Zxid: zxid, Policy: policy}, op, req)
	}
	create := func(path string) *proto.CreateRequest {
		return &proto.CreateRequest{Path: path, Data: []byte("four"), ACL: proto.OpenACL()}
	}
	if r := apply(0, proto.OpCreate, create("/a")); r.Code != proto.Ok {
		t.Fatal(r.Code)
	}
	set := func(data string) *proto.SetDataRequest {
		return &proto.SetDataRequest{Path: "/a", Data: []byte(data), Version: -1}
	}
	for _, c := range []struct {
		op   proto.Op
		req  proto.Record
		want proto.Code
	}{
		{proto.OpCreate, create("/b"), proto.ErrQuotaExceeded},
		{proto.OpCreate, create("/a"), proto.ErrNodeExists},
		{proto.OpSetData, set("more than four"), proto.ErrQuotaExceeded},
		{proto.OpSetData, set("five"), proto.Ok},
		{proto.OpSetData, set(""), proto.Ok},
		{proto.OpSetACL, &proto.SetACLRequest{Path: "/a", ACL: proto.OpenACL(), Version: -1}, proto.ErrQuotaExceeded},
		{proto.OpDelete, &proto.DeleteRequest{Path: "/a", Version: -1}, proto.Ok},
	} {
		if r := apply(Full, c.op, c.req); r.Code != c.want {
			t.Errorf("%v: %v, want %v", c.op, r.Code, c.want)
		}
	}
	r := apply(Full, proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpCreate, Req: create("/c")}}})
	if len(r.Multi) != 1 || r.Multi[0].Code != proto.ErrQuotaExceeded || tr.Get("/c") != nil {
		t.Errorf("multi: %+v", r)
	}
	if err := tr.Check(); err != nil {
		t.Error(err)
	}
}
