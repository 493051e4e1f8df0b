package server

import (
	"slices"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/tree"
)

// write proposes a request if it decodes. Otherwise the reader answers it, and it is
// not a transaction. write returns false if the request can't be proposed.
func (r *reader) write(w *work, h proto.RequestHeader, body []byte) bool {
	c := r.c
	switch {
	case c.session.local && h.Op == proto.OpCloseSession:
		r.ended = true
		c.s.clients.endLocal(c.session.id)
		return r.read(w, h, nil, proto.Ok)
	case c.session.local:
		return r.read(w, h, nil, proto.ErrNotReadOnly)
	}
	defer w.requests.Forget() // the work may wait in its pool for long
	req, what, brings := examine(w.requests, h.Op, body)
	switch what {
	case refusedHere:
		return r.read(w, h, nil, proto.ErrMarshalling)
	case refusedInLog:
		body, brings = refusedMulti(), 0
	}
	if m := c.s.memory; m != nil && m.Full.Load() && r.refusesForMemory(req, brings) {
		return r.read(w, h, nil, proto.ErrQuotaExceeded)
	}
	if c.s.cfg.Auth.EagerACL && c.s.contact.gated {
		if code := c.session.eagerly(h.Op, req); code != proto.Ok {
			r.reply(w, proto.ReplyHeader{Xid: h.Xid, Err: code}, nil)
			return true
		}
	}
	p := c.s.pools.newPending(c, h.Op, h.Xid)
	p.inFlight = true
	if c.s.audit != nil {
		p.ids = c.session.ids.All()
	}
	w.cmd = raftfsm.Command{Kind: raftfsm.KindRequest, Session: c.session.id, Gen: c.session.gen, Op: h.Op, Body: body, Waiter: p}
	switch h.Op {
	case proto.OpSync:
		w.cmd.Kind = raftfsm.KindSync
		p.body = req.Append(p.body) // the reply: the path, without any bytes that followed it
	case proto.OpCloseSession:
		r.ended = true
		w.cmd.Body = nil
	default:
		// They add identities to an ACL, or need them in full, as another ensemble does.
		if brings&authList != 0 || h.Op == proto.OpReconfig || c.s.modes.mirror.following() {
			w.cmd.IDs = c.session.ids.All()
		} else {
			w.cmd.IDs, w.cmd.Prints = c.session.ids.Carried()
		}
	}
	return r.propose(w, p)
}

// propose queues p and proposes w.cmd. It releases the tree's lock first, because
// Propose may wait for the goroutine that applies the log. It leaves the worker before
// Propose waits for room, or for a server that must catch up.
func (r *reader) propose(w *work, p *pending) bool {
	c := r.c
	if w.locked {
		r.settle(w)
	}
	// If a command is lost, the commands after it must be lost too: until Lost has
	// closed the connection, a request that builds on a lost one must not get through.
	w.cmd.Way = 0
	if c.replies.waiting.Load() != 0 {
		w.cmd.Way = r.way
	}
	if !c.replies.push(p) {
		return false
	}
	if r.worker != nil && (w.cmd.Op == proto.OpReconfig || c.s.node.Congested()) {
		r.leaveWorker()
	}
	err := c.s.node.Propose(&w.cmd)
	r.way = w.cmd.Way
	if err != nil {
		c.s.log.Debug("closing a client whose request cannot be proposed", "client", c.nc.RemoteAddr(), "session", sessionID(c.session.id), "error", err)
		return false
	}
	return true
}

// refusesForMemory reports whether a write with this content is refused for lack of memory.
// It is called only while memory is full.
func (r *reader) refusesForMemory(req proto.Record, brings content) bool {
	if brings&growth == 0 {
		return false
	}
	if q, ok := req.(*proto.SetDataRequest); ok && !r.grows(q.Path, len(q.Data)) {
		return false
	}
	r.c.s.memory.Refused.Add(1)
	return true
}

// grows reports whether n bytes are more than the znode at path has.
func (r *reader) grows(path string, n int) bool {
	t := r.c.s.tree
	t.RLock()
	defer t.RUnlock()
	have := t.Get(path)
	return have == nil || n > len(have.Data())
}

// admission is the decision whether a write is proposed and, if not, how it is refused.
type admission uint8

const (
	proposable   admission = iota
	refusedHere            // doesn't decode: not a transaction
	refusedInLog           // doesn't decode, but is a transaction
)

// content describes the content of a write.
type content uint8

const (
	nullList content = 1 << iota // an ACL that is null
	authList                     // an ACL with the scheme auth
	growth                       // what may make the tree larger
)

// contentOf describes the request of an operation that isn't a multi.
func contentOf(op proto.Op, req proto.Record) (found content) {
	if op.Grows() {
		found |= growth
	}
	acl, ok := aclOf(req)
	if ok && acl == nil {
		found |= nullList
	}
	if slices.ContainsFunc(acl, func(a proto.ACL) bool { return a.ID.Scheme == schemes.Auth }) {
		found |= authList
	}
	return found
}

// aclOf returns the list that a request sets, or false if it sets no list.
func aclOf(req proto.Record) ([]proto.ACL, bool) {
	switch q := req.(type) {
	case *proto.CreateRequest:
		return q.ACL, true
	case *proto.CreateTTLRequest:
		return q.ACL, true
	case *proto.SetACLRequest:
		return q.ACL, true
	}
	return nil, false
}

// examine decodes body as a request of op, completely: every server must be able to decode
// the log. The tree decides whether the request makes sense. The record is nil for a multi
// and for a request without a body.
func examine(q *proto.Requests, op proto.Op, body []byte) (req proto.Record, what admission, found content) {
	if op == proto.OpMulti {
		what, found = examineMulti(q, body)
		return nil, what, found
	}
	req, err := q.Decode(op, body)
	if err != nil {
		return nil, refusedHere, 0
	}
	return req, proposable, contentOf(op, req)
}

// examineMulti is examine for the operations of a multi, in the order in which
// ZooKeeper checks them. A multi that ZooKeeper refuses there has a zxid, except for a
// create with a null list, which fails earlier.
func examineMulti(q *proto.Requests, body []byte) (what admission, found content) {
	reads, writes := false, false
	err := q.Parts(body, func(part proto.MultiOp) bool {
		brings := contentOf(part.Op, part.Req)
		found |= brings
		read := part.Op.Kind() == proto.Read
		reads, writes = reads || read, writes || !read
		create, ok := part.Req.(*proto.CreateRequest)
		switch {
		case ok && !proto.CreateMode(create.Flags).Valid():
			what = refusedInLog
		case ok && brings&nullList != 0:
			what = refusedHere
		case reads && writes || ok && proto.CreateMode(create.Flags).TTL():
			what = refusedInLog
		}
		return what == proposable
	})
	if what == proposable && (err != nil || reads) {
		what = refusedInLog
	}
	return what, found
}

// refusedMulti returns the body of a multi that decodes and that every tree refuses
// with MarshallingError. In the log it replaces a multi that doesn't decode.
func refusedMulti() []byte {
	m := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: proto.NullString}}}}
	return m.Append(nil)
}

// eagerly checks a write against this server's own copy before the write goes to the
// ensemble (enableEagerACLCheck): a client without permission then costs the ensemble
// nothing. The log decides about paths that are missing here and requests that don't
// decode. It also decides about a write queued after others of its session, because
// these may permit it. ZooKeeper leaves createContainer and createTTL to the log too.
func (cs *clientSession) eagerly(op proto.Op, req proto.Record) proto.Code {
	c := cs.c
	path, ok := proto.PathOf(req)
	if !ok || op.Perms() == 0 || op == proto.OpCreateContainer || op == proto.OpCreateTTL || c.replies.waiting.Load() != 0 || proto.ValidatePath(path) != nil {
		return proto.Ok
	}
	policy := c.s.cfg.policy()
	if acl, sets := aclOf(req); sets {
		if _, code := tree.NormalizeACL(acl, cs.ids.All(), policy); code == proto.ErrInvalidACL {
			return code
		}
	}
	if policy&tree.SkipACL != 0 {
		return proto.Ok
	}
	t := c.s.tree
	t.RLock()
	defer t.RUnlock()
	if n := t.Get(op.Guard(path)); n != nil && !n.Allows(op.Perms(), cs.ids.All()) {
		return proto.ErrNoAuth
	}
	return proto.Ok
}
