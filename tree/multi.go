package tree

import "github.com/zkgo/zkgo/proto"

// multi executes all of q's operations or none. If one of them is refused, the
// multi itself still succeeds, and its entries tell which one failed. A code other
// than Ok refuses the whole request, without entries.
func (t *Tree) multi(tx *Txn, q *proto.MultiRequest, r *Result) proto.Code {
	for i := range q.Ops {
		if !wellFormed(&q.Ops[i]) {
			return proto.ErrMarshalling
		}
	}
	t.prefetchMulti(q)
	t.begin(tx)
	defer t.end()
	for i := range q.Ops {
		r.Multi = append(r.Multi, Result{})
		code := t.part(tx, &q.Ops[i], &r.Multi[i], &r.Events)
		if code == proto.Ok {
			continue
		}
		t.rollback()
		r.Events = r.Events[:0]
		if code == proto.ErrMarshalling {
			r.Multi = r.Multi[:0]
			return code
		}
		r.fail(i, len(q.Ops), code)
		break
	}
	return proto.Ok
}

// fail makes r the result of a multi of n operations whose i-th operation failed.
func (r *Result) fail(i, n int, code proto.Code) {
	r.Multi = r.Multi[:0]
	for k := range n {
		entry := Result{Op: proto.OpError}
		switch {
		case k == i:
			entry.Code = code
		case k > i:
			entry.Code = proto.ErrRuntimeInconsistency
		}
		r.Multi = append(r.Multi, entry)
	}
}

// part executes one operation of a multi.
func (t *Tree) part(tx *Txn, m *proto.MultiOp, r *Result, events *[]Event) proto.Code {
	switch q := m.Req.(type) {
	case *proto.CheckVersionRequest:
		r.Op = m.Op
		return t.check(tx, q)
	case *proto.CreateRequest, *proto.CreateTTLRequest:
		c := partCreation(m)
		r.Op = proto.OpCreate
		if c.op != proto.OpCreate {
			r.Op = proto.OpCreate2 // createContainer and createTTL have the same reply
		}
		return t.create(tx, &c, r, events)
	}
	r.Op = m.Op
	return t.apply(tx, m.Op, m.Req, r, events)
}

// partCreation unpacks a create of a multi. Unlike outside a multi, the flags
// choose the operation: flag 4 makes a container, and a createTTL whose flags
// aren't those of a time to live is a plain create.
func partCreation(m *proto.MultiOp) creation {
	c, _ := creationOf(m.Op, m.Req)
	mode := proto.CreateMode(c.flags)
	if c.op == proto.OpCreateTTL && !(mode.Valid() && mode.TTL()) {
		c.op, c.ttl = proto.OpCreate, -1
	}
	if mode == proto.ModeContainer {
		c.op = proto.OpCreateContainer
	}
	return c
}

// wellFormed reports whether ZooKeeper's server accepts m in a multi at all. It is
// stricter than for a request outside a multi: no path may be null, even if the
// multi never reaches the operation, and a create other than createTTL needs a
// list and a known mode without a time to live.
func wellFormed(m *proto.MultiOp) bool {
	switch q := m.Req.(type) {
	case *proto.CreateRequest:
		mode := proto.CreateMode(q.Flags)
		switch m.Op {
		case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer:
			return mode.Valid() && !mode.TTL() && q.ACL != nil && q.Path != proto.NullString
		}
		return false
	case *proto.CreateTTLRequest:
		return m.Op == proto.OpCreateTTL && q.Path != proto.NullString
	case *proto.DeleteRequest:
		return m.Op == proto.OpDelete && q.Path != proto.NullString
	case *proto.SetDataRequest:
		return m.Op == proto.OpSetData && q.Path != proto.NullString
	case *proto.CheckVersionRequest:
		return m.Op == proto.OpCheck && q.Path != proto.NullString
	}
	return false
}
