package checkers

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// sessions checks that on every connection replies come in the order of the
// requests and none is missing; that across all connections of a session zxids
// never go back; and that a request sent on a connection is not executed after
// the session has continued on another.
func sessions(x *index, _ *Options, r *Result) {
	replies, moves := 0, 0
	for _, l := range x.sessions() {
		if l.id == 0 {
			continue
		}
		var newest frame // the reply with the highest zxid so far
		for i, c := range l.conns {
			if i > 0 {
				moves++
			}
			c.inOrder(x, r)
			for _, f := range c.frames {
				if f.op == nil || f.op.Zxid <= 0 {
					continue
				}
				replies++
				if newest.op != nil && f.op.Zxid < newest.op.Zxid {
					r.violation(x, []record{newest.op, f.op}, "session %#x: zxid %#x was shown, and then %#x", l.id, newest.op.Zxid, f.op.Zxid)
				} else {
					newest = f
				}
			}
		}
		l.leftBehind(x, r)
	}
	r.count(len(x.lives), "sessions")
	r.count(replies, "replies")
	r.count(moves, "moves to another connection")
}

// inOrder checks the order of the replies on one connection.
func (c *connection) inOrder(x *index, r *Result) {
	sent := 0
	var last *history.Op
	for _, f := range c.frames {
		o := f.op
		switch {
		case o == nil:
			continue
		case o.Bad != "":
			r.violation(x, []record{o}, "connection %d: a reply that cannot be understood: %s", c.id, o.Bad)
		case o.Sent == 0:
			r.violation(x, []record{o}, "connection %d: a reply that nobody waits for", c.id)
			continue
		case o.Sent < sent:
			r.violation(x, []record{last, o}, "connection %d: the reply to request %d came after that to request %d", c.id, o.Sent, sent)
		case o.Sent > sent+1 && o.Op != proto.OpAuth:
			c.skipped(x, r, sent, o)
		}
		if o.Sent > sent {
			sent, last = o.Sent, o
		}
	}
}

// skipped reports requests that were never answered though a later one was. Other
// missing replies come later on the connection, and inOrder reports their order.
func (c *connection) skipped(x *index, r *Result, sent int, o *history.Op) {
	for _, q := range c.ops {
		if q.Sent > sent && q.Sent < o.Sent && !q.Answered() {
			r.violation(x, []record{q, o}, "connection %d: request %d has no reply, and request %d after it has one", c.id, q.Sent, o.Sent)
		}
	}
}

// leftBehind checks that a request without a reply that turned out to be executed
// was executed before the session received its next reply on another connection.
func (l *life) leftBehind(x *index, r *Result) {
	var later *connection // of the later connections, the one that began with the lowest zxid
	var first *history.Op // the reply that showed it
	for i := len(l.conns) - 1; i >= 0; i-- {
		c := l.conns[i]
		for _, o := range c.ops {
			if o.Answered() || first == nil || len(x.byOp[o]) == 0 || !x.byOp[o][0].done() {
				continue
			}
			if zxid := x.byOp[o][0].zxid; first.Zxid < zxid {
				r.violation(x, []record{o, later.attach, first}, "session %#x: a request of connection %d was executed as zxid %#x, after connection %d had shown zxid %#x", l.id, c.id, zxid, later.id, first.Zxid)
			}
		}
		if f := c.firstReply(); f != nil && (first == nil || f.Zxid < first.Zxid) {
			later, first = c, f
		}
	}
}

// firstReply returns the first reply that carries a zxid.
func (c *connection) firstReply() *history.Op {
	for _, f := range c.frames {
		if f.op != nil && f.op.Zxid > 0 {
			return f.op
		}
	}
	return nil
}
