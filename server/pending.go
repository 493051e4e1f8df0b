package server

import "github.com/zkgo/zkgo/proto"

// pending is a queued request: in flight, or queued after one in flight. A connection's
// queue lists them in the order of the requests.
type pending struct {
	c        *conn
	next     *pending
	inFlight bool // proposed; otherwise it is answered at the head of the queue
	op       proto.Op
	xid      int32
	refuse   proto.Code // not Ok: the answer, regardless of the tree
	arrived  int64      // clock
	ids      []proto.ID
	body     []byte // a copy; a write needs none
	weight   int    // of a read: approximate length of its reply
	connect  *connecting
	charge   charge
}

// maxKeptBody is the largest capacity of a body that a pooled pending keeps.
const maxKeptBody = 512

// newPending returns an empty pending for c.
func (pl *pools) newPending(c *conn, op proto.Op, xid int32) *pending {
	p, ok := pl.pendings.Get().(*pending)
	if !ok {
		p = new(pending)
	}
	p.c, p.op, p.xid, p.arrived = c, op, xid, c.reader.started
	return p
}

// freePending returns p to the pool. The caller must hold the last reference.
func (pl *pools) freePending(p *pending) {
	body := p.body[:0]
	if cap(body) > maxKeptBody {
		body = nil
	}
	*p = pending{body: body}
	pl.pendings.Put(p)
}
