package server

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// write proposes a request, if it decodes: what does not is answered here, and
// is no transaction. It reports false when nobody takes proposals.
func (c *conn) write(w *work, h proto.RequestHeader, body []byte) bool {
	switch {
	case c.local && h.Op == proto.OpCloseSession:
		c.ended = true
		return c.read(w, h, nil, proto.Ok)
	case c.local:
		return c.read(w, h, nil, proto.ErrNotReadOnly)
	case !decodes(h.Op, body):
		return c.read(w, h, nil, proto.ErrMarshalling)
	}
	p := c.s.newPending(c, h.Op, h.Xid)
	p.inFlight = true
	kind := raftfsm.KindRequest
	switch h.Op {
	case proto.OpSync:
		kind = raftfsm.KindSync
		p.body = append(p.body, body...)
	case proto.OpCloseSession:
		c.ended = true
		body = nil
	}
	w.cmd = raftfsm.Command{
		Kind: kind, Session: c.sid, Gen: c.gen, IDs: c.identities(),
		Op: h.Op, Body: body, Waiter: p,
	}
	return c.propose(w, p)
}

// propose queues p and proposes w.cmd. The tree's lock is given up before, since
// a proposer may make its callers wait for the goroutine that applies.
func (c *conn) propose(w *work, p *pending) bool {
	if w.locked {
		c.settle(w)
	}
	if !c.push(p) {
		return false
	}
	if err := c.s.node.Propose(&w.cmd); err != nil {
		c.s.log.Debug("closing a client whose request cannot be proposed", "client", c.nc.RemoteAddr(), "session", sessionID(c.sid), "error", err)
		return false
	}
	return true
}

// decodes reports whether body is a request of op, all the way through: what is
// in the log has to decode on every server.
func decodes(op proto.Op, body []byte) bool {
	r := proto.AliasReader(body)
	switch op {
	case proto.OpMulti:
		return decodesMulti(&r)
	case proto.OpSync:
		return r.String() != proto.NullString && r.Err() == nil
	case proto.OpCloseSession:
		return true
	case proto.OpSetACL:
		path := r.String()
		skipACLs(&r)
		r.Int()
		return path != proto.NullString && r.Err() == nil
	case proto.OpReconfig:
		var req proto.ReconfigRequest
		req.Decode(&r)
		return r.Err() == nil
	}
	_, ok := decodesOp(op, &r)
	return ok
}

// decodesOp reads one of the operations that may stand in a multi. It returns
// the create flags, 0 for others.
func decodesOp(op proto.Op, r *proto.Reader) (flags proto.CreateMode, ok bool) {
	path := r.String()
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		r.Buffer()
		skipACLs(r)
		flags = proto.CreateMode(r.Int())
		if op == proto.OpCreateTTL {
			r.Long()
		}
	case proto.OpSetData:
		r.Buffer()
		r.Int()
	case proto.OpDelete, proto.OpCheck:
		r.Int()
	default:
		return 0, false
	}
	return flags, path != proto.NullString && r.Err() == nil
}

// aclMin is the least number of bytes that an entry of an ACL takes.
const aclMin = 12

// skipACLs reads a list of ACLs. One for everybody whose id is null does not
// decode for ZooKeeper either.
func skipACLs(r *proto.Reader) {
	for range max(r.Count(aclMin), 0) {
		r.Int()
		scheme, id := r.String(), r.String()
		if scheme == "world" && id == proto.NullString {
			r.Fail(proto.ErrMarshalling)
		}
	}
}

// decodesMulti is decodes for the operations of a multi. One with a create mode
// that does not exist is refused whole, as by ZooKeeper 3.9.
func decodesMulti(r *proto.Reader) bool {
	for {
		var h proto.MultiHeader
		h.Decode(r)
		if r.Err() != nil || h.Done {
			return r.Err() == nil
		}
		if flags, ok := decodesOp(h.Op, r); !ok || !flags.Valid() {
			return false
		}
	}
}
