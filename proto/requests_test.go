package proto

import (
	"reflect"
	"testing"
)

// Forget should leave nothing of a body in the records, whether it was decoded whole or in
// parts, and costs no allocation.
func TestForget(t *testing.T) {
	set := &SetDataRequest{Path: "/a", Data: []byte("x"), Version: 3}
	create := &CreateRequest{Path: "/a", Data: []byte("x"), ACL: OpenACL(), Flags: 1}
	multi := &MultiRequest{Ops: []MultiOp{{OpSetData, set}, {OpCreate, create}, {OpSetData, set}}}
	var q Requests
	empty := func(op Op) {
		t.Helper()
		if got := q.records[op-lowest]; !reflect.DeepEqual(got, op.row().fresh(nil)) {
			t.Errorf("%v keeps %+v", op, got)
		}
		for _, a := range q.acls[:cap(q.acls)] {
			if a.ID != (ID{}) {
				t.Errorf("%v keeps the list %v", op, q.acls[:cap(q.acls)])
			}
		}
	}
	for op, req := range map[Op]Record{OpSetData: set, OpCreate: create} {
		if got, err := q.Decode(op, req.Append(nil)); err != nil || !reflect.DeepEqual(got, req) {
			t.Errorf("%v: %+v, %v", op, got, err)
		}
		q.Forget()
		empty(op)
	}
	body := multi.Append(nil)
	for _, cut := range []int{0, 20, 30} {
		n := 0
		err := q.Parts(body[:len(body)-cut], func(part MultiOp) bool {
			if !reflect.DeepEqual(part, multi.Ops[n]) {
				t.Errorf("part %d is %+v", n, part)
			}
			n++
			return true
		})
		q.Forget()
		if (err == nil) != (cut == 0) || cut == 0 && n != len(multi.Ops) {
			t.Errorf("without the last %d bytes: %d parts, %v", cut, n, err)
		}
		empty(OpSetData)
		empty(OpCreate)
	}
	if n := testing.AllocsPerRun(100, func() {
		_ = q.Parts(body, func(MultiOp) bool { return true })
		q.Forget()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
