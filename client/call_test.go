package client

import (
	"bytes"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// A call's frame should contain the operation's own record with the whole path. Building the
// frame should allocate nothing.
func TestRequestFrames(t *testing.T) {
	open := proto.OpenACL()
	for op, want := range map[proto.Op]func(path string) proto.Record{
		proto.OpGetData: func(p string) proto.Record { return &proto.GetDataRequest{Path: p, Watch: true} },
		proto.OpDelete:  func(p string) proto.Record { return &proto.DeleteRequest{Path: p, Version: 5} },
		proto.OpSetData: func(p string) proto.Record { return &proto.SetDataRequest{Path: p, Data: []byte("x"), Version: 5} },
		proto.OpCreate2: func(p string) proto.Record {
			return &proto.CreateRequest{Path: p, Data: []byte("x"), ACL: open, Flags: 5}
		},
		proto.OpSetACL:   func(p string) proto.Record { return &proto.SetACLRequest{Path: p, ACL: open, Version: 5} },
		proto.OpAddWatch: func(p string) proto.Record { return &proto.AddWatchRequest{Path: p, Mode: 5} },
		proto.OpSync:     func(p string) proto.Record { return &proto.SyncRequest{Path: p} },
		proto.OpCreateTTL: func(p string) proto.Record {
			return &proto.CreateTTLRequest{Path: p, Data: []byte("x"), ACL: open, Flags: 5, TTL: 7}
		},
		proto.OpGetEphemerals: func(p string) proto.Record { return &proto.GetEphemeralsRequest{Prefix: p} },
		proto.OpWhoAmI:        nil,
	} {
		for _, at := range [][3]string{{"", "/a", "/a"}, {"", "/", "/"}, {"/app", "/a", "/app/a"}, {"/app", "/", "/app"}, {"/app", "", "/app"}} {
			k := call{op: op, xid: 3, prefix: at[0], path: at[1], data: []byte("x"), acl: open, num: 5, ttl: 7, watch: true}
			h := proto.RequestHeader{Xid: 3, Op: op}
			body := h.Append(nil)
			if want != nil {
				body = want(at[2]).Append(body)
			}
			if got := k.appendFrame([]byte("before")); !bytes.Equal(got, proto.AppendFrame([]byte("before"), body)) {
				t.Errorf("%v %q: %q instead of %q", op, at, got, body)
			}
			room := make([]byte, 0, 1024)
			if n := testing.AllocsPerRun(100, func() { k.appendFrame(room) }); n != 0 {
				t.Errorf("%v %q: %v allocations", op, at, n)
			}
		}
	}
}

// Decoding a reply should allocate only the result for the caller, i.e. the data here.
func TestReplyAllocations(t *testing.T) {
	for _, c := range []struct {
		op    proto.Op
		reply proto.Record
		want  float64
	}{
		{proto.OpGetData, &proto.GetDataResponse{Data: []byte("x")}, 1},
		{proto.OpExists, &proto.ExistsResponse{}, 0},
		{proto.OpCreate2, &proto.Create2Response{Path: "/a/longer/path/than/one/word"}, 1},
	} {
		body := c.reply.Append(nil)
		var k call
		if n := testing.AllocsPerRun(100, func() {
			r := proto.NewReader(body)
			k.decode(c.op, &r)
		}); n != c.want {
			t.Errorf("%v: %v allocations instead of %v", c.op, n, c.want)
		}
	}
}
