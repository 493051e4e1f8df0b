package server

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// write proposes a request if it decodes. Otherwise the reader answers it, and it is
// not a transaction. write returns false if the request can't be proposed.
func (c *conn) write(w *work, h proto.RequestHeader, body []byte) bool {
	switch {
	case c.local && h.Op == proto.OpCloseSession:
		c.ended = true
		c.s.endLocal(c.sid)
		return c.read(w, h, nil, proto.Ok)
	case c.local:
		return c.read(w, h, nil, proto.ErrNotReadOnly)
	}
	what, lists := examine(h.Op, body)
	switch what {
	case refusedHere:
		return c.read(w, h, nil, proto.ErrMarshalling)
	case refusedInLog:
		body, lists = refusedMulti(), 0
	}
	if m := c.s.memory; m != nil && m.full.Load() && m.refuses(c.s, h.Op, body) {
		return c.read(w, h, nil, proto.ErrQuotaExceeded)
	}
	if c.s.cfg.EagerACL && c.s.gated {
		if code := c.eagerly(h.Op, body); code != proto.Ok {
			c.reply(w, proto.ReplyHeader{Xid: h.Xid, Err: code}, nil)
			return true
		}
	}
	p := c.s.newPending(c, h.Op, h.Xid)
	p.inFlight = true
	if c.s.audit != nil {
		p.ids = c.identities()
	}
	w.cmd = raftfsm.Command{Kind: raftfsm.KindRequest, Session: c.sid, Gen: c.gen, Op: h.Op, Body: body, Waiter: p}
	switch h.Op {
	case proto.OpSync:
		w.cmd.Kind = raftfsm.KindSync
		p.body = appendSyncPath(p.body, body)
	case proto.OpCloseSession:
		c.ended = true
		w.cmd.Body = nil
	default:
		c.identify(&w.cmd, lists)
	}
	return c.propose(w, p)
}

// appendSyncPath appends the reply to a sync: its path, which may be null, without any
// bytes that followed.
func appendSyncPath(b, body []byte) []byte {
	var req proto.SyncRequest
	r := proto.AliasReader(body)
	req.Decode(&r)
	return req.Append(b)
}

// propose queues p and proposes w.cmd. It releases the tree's lock first, because
// Propose may wait for the goroutine that applies the log. It leaves the round before
// Propose waits for room, or for a server that has to catch up.
func (c *conn) propose(w *work, p *pending) bool {
	if w.locked {
		c.settle(w)
	}
	// If a command is lost, the commands after it must be lost too: until Lost has
	// closed the connection, a request that builds on a lost one must not get through.
	w.cmd.Way = 0
	if c.waiting.Load() != 0 {
		w.cmd.Way = c.way
	}
	if !c.push(p) {
		return false
	}
	if c.round != nil && (w.cmd.Op == proto.OpReconfig || c.s.node.Congested()) {
		c.leaveRound()
	}
	err := c.s.node.Propose(&w.cmd)
	c.way = w.cmd.Way
	if err != nil {
		c.s.log.Debug("closing a client whose request cannot be proposed", "client", c.nc.RemoteAddr(), "session", sessionID(c.sid), "error", err)
		return false
	}
	return true
}

// intake says what happens to a write.
type intake uint8

const (
	proposable   intake = iota
	refusedHere         // doesn't decode: not a transaction
	refusedInLog        // doesn't decode, but is a transaction
)

// lists describes the ACLs in a request.
type lists uint8

const (
	nullList lists = 1 << iota // a list is null
	authList                   // an entry has the scheme auth
)

// examine decodes body as a request of op, completely: every server must be able to
// decode what is in the log. The tree decides whether the request makes sense.
func examine(op proto.Op, body []byte) (what intake, found lists) {
	r := proto.AliasReader(body)
	switch op {
	case proto.OpCloseSession:
	case proto.OpMulti:
		return examineMulti(&r)
	case proto.OpSync:
		_ = r.String()
	case proto.OpSetACL:
		_ = r.String()
		found = skipACLs(&r)
		r.Int()
	case proto.OpReconfig:
		for range 3 {
			_ = r.String()
		}
		r.Long()
	default:
		_, found = decodeOp(op, &r)
	}
	if r.Err() != nil {
		return refusedHere, 0
	}
	return proposable, found
}

// decodeOp decodes an operation that is allowed in a multi, and fails r for other
// operations. For a create it returns the mode and describes the ACL.
func decodeOp(op proto.Op, r *proto.Reader) (mode proto.CreateMode, found lists) {
	switch op {
	case proto.OpCreate, proto.OpCreate2, proto.OpCreateContainer, proto.OpCreateTTL:
		_ = r.String()
		r.Buffer()
		found = skipACLs(r)
		mode = proto.CreateMode(r.Int())
		if op == proto.OpCreateTTL {
			r.Long()
		}
	case proto.OpSetData:
		_ = r.String()
		r.Buffer()
		r.Int()
	case proto.OpDelete, proto.OpCheck:
		_ = r.String()
		r.Int()
	case proto.OpGetData, proto.OpGetChildren:
		_ = r.String()
		r.Bool()
	default:
		r.Fail(proto.ErrMarshalling)
	}
	return mode, found
}

// aclMin is the minimum size of an ACL entry, in bytes.
const aclMin = 12

// skipACLs skips an ACL and describes it.
func skipACLs(r *proto.Reader) (found lists) {
	n := r.Count(aclMin)
	if n < 0 && r.Err() == nil {
		return nullList
	}
	for range max(n, 0) {
		r.Int()
		if r.String() == schemeAuth {
			found |= authList
		}
		_ = r.String()
	}
	return found
}

// schemeAuth is the scheme of the ACL entry that stands for all identities the client
// has proved.
const schemeAuth = "auth"

// examineMulti is examine for the operations of a multi, in the order in which
// ZooKeeper checks them. A multi that ZooKeeper refuses there has a zxid, except for a
// create with a null list, which fails earlier.
func examineMulti(r *proto.Reader) (what intake, found lists) {
	var h proto.MultiHeader
	reads, writes := false, false
	for h.Decode(r); r.Err() == nil && !h.Done; h.Decode(r) {
		mode, lists := decodeOp(h.Op, r)
		found |= lists
		create := h.Op == proto.OpCreate || h.Op == proto.OpCreate2 || h.Op == proto.OpCreateContainer
		read := h.Op.Kind() == proto.Read
		reads, writes = reads || read, writes || !read
		switch {
		case r.Err() != nil || create && !mode.Valid():
			return refusedInLog, 0
		case create && lists&nullList != 0:
			return refusedHere, 0
		case reads && writes || create && mode.TTL():
			return refusedInLog, 0
		}
	}
	if r.Err() != nil || reads {
		return refusedInLog, 0
	}
	return proposable, found
}

// refusedMulti returns the body of a multi that decodes and that every tree refuses
// with MarshallingError. In the log it replaces a multi that doesn't decode.
func refusedMulti() []byte {
	m := proto.MultiRequest{Ops: []proto.MultiOp{{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: proto.NullString}}}}
	return m.Append(nil)
}
