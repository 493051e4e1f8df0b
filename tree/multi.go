package tree

import "github.com/zkgo/zkgo/proto"

// multi executes all of q's operations or none. If an operation is refused, the multi
// itself still succeeds, and its entries tell which operation failed. A code other than
// Ok refuses the whole request, without entries.
func (t *exec) multi(q *proto.MultiRequest, r *Result) proto.Code {
	for i := range q.Ops {
		if !wellFormed(&q.Ops[i]) {
			return proto.ErrMarshalling
		}
	}
	t.prefetchMulti(q)
	t.begin(t.tx.Policy)
	defer t.end()
	for i := range q.Ops {
		r.Multi = append(r.Multi, Result{})
		code := t.part(&q.Ops[i], &r.Multi[i])
		if code == proto.Ok {
			continue
		}
		t.rollback()
		if t.tx.Record != nil {
			*t.tx.Record = (*t.tx.Record)[:0]
		}
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

// prefetchMulti is Prefetch for the operations of a multi.
func (t *store) prefetchMulti(q *proto.MultiRequest) {
	if len(q.Ops) < 2 {
		return
	}
	var room [PrefetchMax]string
	paths := room[:0]
	for i := range q.Ops[:min(len(q.Ops), PrefetchMax)] {
		if path, ok := q.Ops[i].Path(); ok {
			paths = append(paths, path)
		}
	}
	t.arena.Prefetch(paths)
}

// fail makes r the result of a multi of n operations after its i-th operation failed.
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
func (t *exec) part(m *proto.MultiOp, r *Result) proto.Code {
	r.Op = m.Op
	if q, ok := m.Req.(*proto.CheckVersionRequest); ok && m.Op == proto.OpCheck {
		return t.check(q)
	}
	c, ok := partCreation(m)
	if !ok {
		return t.apply(m.Op, m.Req, r)
	}
	r.Op = proto.OpCreate
	if c.op != proto.OpCreate {
		r.Op = proto.OpCreate2 // createContainer and createTTL have the same reply
	}
	return t.create(&c, r)
}

// partCreation unpacks a create of a multi. Unlike outside a multi, the flags choose the
// operation: flag 4 makes a container, and a createTTL without the flags of a time to
// live is a plain create.
func partCreation(m *proto.MultiOp) (creation, bool) {
	c, ok := creationOf(m.Op, m.Req)
	mode := proto.CreateMode(c.flags)
	if c.op == proto.OpCreateTTL && !(mode.Valid() && mode.TTL()) {
		c.op, c.ttl = proto.OpCreate, -1
	}
	if mode == proto.ModeContainer {
		c.op = proto.OpCreateContainer
	}
	return c, ok
}

// wellFormed reports whether ZooKeeper's server accepts m in a multi at all. The check is
// stricter than for a request outside a multi: no path may be null, even if the multi never
// reaches the operation, and a create other than createTTL needs a list and a known mode
// without a time to live.
func wellFormed(m *proto.MultiOp) bool {
	if path, ok := m.Path(); !ok || path == proto.NullString || !m.Op.InMulti() || m.Op.Kind() == proto.Read {
		return false
	}
	if q, ok := m.Req.(*proto.CreateRequest); ok {
		mode := proto.CreateMode(q.Flags)
		return mode.Valid() && !mode.TTL() && q.ACL != nil
	}
	return true
}
