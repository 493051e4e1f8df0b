package proto

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
)

func TestMulti(t *testing.T) {
	t.Parallel()
	write := MultiRequest{Ops: []MultiOp{
		{OpCreate, &CreateRequest{Path: "/a", ACL: OpenACL()}},
		{OpCreate2, &CreateRequest{Path: "/b", Data: []byte{}, ACL: []ACL{}}},
		{OpCreateContainer, &CreateRequest{Path: "/c"}},
		{OpCreateTTL, &CreateTTLRequest{Path: "/d", TTL: 7}},
		{OpDelete, &DeleteRequest{Path: "/e", Version: -1}},
		{OpSetData, &SetDataRequest{Path: NullString}},
		{OpCheck, &CheckVersionRequest{Path: "/g"}},
	}}
	read := MultiRequest{Ops: []MultiOp{{OpGetData, &GetDataRequest{Path: "/a"}}, {OpGetChildren, &GetChildrenRequest{Path: "/b", Watch: true}}}}
	for _, m := range []MultiRequest{write, read, {}} {
		b := m.Append(nil)
		var want []byte
		for _, op := range m.Ops {
			want = encode(want, reflect.ValueOf(MultiHeader{op.Op, false, -1}))
			want = encode(want, reflect.ValueOf(op.Req).Elem())
		}
		want = encode(want, reflect.ValueOf(MultiHeader{OpError, true, -1}))
		if !bytes.Equal(b, want) {
			t.Errorf("%x\n%x", b, want)
		}
		got := MultiRequest{Ops: []MultiOp{{}}}
		r := NewReader(b)
		if got.Decode(&r); r.Err() != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%+v, %v", got, r.Err())
		}
		for n := range b {
			r := NewReader(b[:n])
			if new(MultiRequest).Decode(&r); r.Err() == nil {
				t.Errorf("%d of %d bytes", n, len(b))
			}
		}
	}
}

// TestMultiReusesRecords: decoding into a used request gives the same result as into a new
// one, and allocates nothing if the operations are of the same kinds. We should not keep
// the records of a long request.
func TestMultiReusesRecords(t *testing.T) { //nolint:paralleltest // it counts allocations
	set := func(n int, path string) MultiRequest {
		var m MultiRequest
		for i := range n {
			m.Ops = append(m.Ops, MultiOp{OpSetData, &SetDataRequest{Path: path, Data: []byte{byte(i)}, Version: int32(i)}})
		}
		return m
	}
	mixed := MultiRequest{Ops: []MultiOp{
		{OpCreate, &CreateRequest{Path: "/a", ACL: OpenACL()}},
		{OpSetData, &SetDataRequest{Path: "/b"}},
		{OpCreateTTL, &CreateTTLRequest{Path: "/d", TTL: 7}},
	}}
	var got MultiRequest
	for i, m := range []MultiRequest{set(10, "/x"), mixed, set(3, "/y"), set(20, "/z"), mixed, set(maxOpsReused+1, "/l"), set(2, "/s")} {
		r := AliasReader(m.Append(nil))
		if got.Decode(&r); r.Err() != nil || !reflect.DeepEqual(got.Ops, m.Ops) {
			t.Fatalf("request %d is %+v, %v", i, got.Ops, r.Err())
		}
	}
	if cap(got.Ops) > maxOpsReused {
		t.Fatalf("there is room for %d operations", cap(got.Ops))
	}
	m := set(10, "/x")
	b := m.Append(nil)
	var r Reader
	if n := testing.AllocsPerRun(10, func() {
		r = AliasReader(b)
		got.Decode(&r)
	}); n != 0 || r.Err() != nil {
		t.Fatalf("%v allocations, %v", n, r.Err())
	}
}

// TestMultiRefuses: Decode should refuse operations that ZooKeeper doesn't accept in a
// multi.
func TestMultiRefuses(t *testing.T) {
	t.Parallel()
	get, del := MultiOp{OpGetData, &GetDataRequest{Path: "/a"}}, MultiOp{OpDelete, &DeleteRequest{Path: "/a"}}
	for want, ops := range map[string][]MultiOp{
		"reads and writes in one multi": {get, del},
		"in one multi":                  {del, get},
		"setACL inside a multi":         {{OpSetACL, &SetACLRequest{}}},
		"multi inside a multi":          {{OpMulti, &MultiRequest{}}},
		"exists inside":                 {{OpExists, &ExistsRequest{}}},
		"error inside":                  {{OpError, &ErrorResponse{}}},
	} {
		b := (&MultiRequest{Ops: ops}).Append(nil)
		r := NewReader(b)
		if new(MultiRequest).Decode(&r); r.Err() == nil || !strings.Contains(r.Err().Error(), want) {
			t.Errorf("%q: %v", want, r.Err())
		}
	}
}
