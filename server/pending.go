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
func (s *Server) newPending(c *conn, op proto.Op, xid int32) *pending {
	p, ok := s.pendings.Get().(*pending)
	if !ok {
		p = new(pending)
	}
	p.c, p.op, p.xid, p.arrived = c, op, xid, c.started
	return p
}

// freePending returns p to the pool. The caller must hold the last reference.
func (s *Server) freePending(p *pending) {
	body := p.body[:0]
	if cap(body) > maxKeptBody {
		body = nil
	}
	*p = pending{body: body}
	s.pendings.Put(p)
}

// push appends p to the queue, after the replies made so far. From then on, until the
// queue is empty, the reader itself answers nothing. It returns false if the connection
// is closed, or if p is not in flight and the queue is empty.
func (c *conn) push(p *pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !p.inFlight && c.head == nil {
		return false
	}
	c.settleReplies()
	if c.tail == nil {
		c.head = p
	} else {
		c.tail.next = p
	}
	c.tail = p
	c.held += len(p.body)
	c.due += p.weight
	c.waiting.Add(1)
	if p.inFlight {
		if c.s.outstanding.Add(1) > int64(c.s.cfg.GlobalOutstanding) {
			c.over = true
		}
		if p.op == proto.OpSync {
			c.s.stats.syncs.Add(1)
		}
	}
	p.charge, c.charge = c.charge, charge{}
	return true
}

// pop removes the head and returns the next one; c.mu is held.
func (c *conn) pop() *pending {
	p := c.head
	c.head = p.next
	if c.head == nil {
		c.tail = nil
	}
	c.held -= len(p.body)
	c.due -= p.weight
	c.waiting.Add(-1)
	if p.inFlight {
		c.s.outstanding.Add(-1)
		if p.op == proto.OpSync {
			c.s.stats.syncs.Add(-1)
		}
	}
	if p.charge != (charge{}) {
		c.s.discharge(p.charge)
	}
	return c.head
}

// abandon empties the queue of a connection that has ended. A request in flight may
// still complete, and then finds the connection closed; c.mu is held.
func (c *conn) abandon() {
	for c.head != nil {
		c.pop()
	}
}

// Bounds of what a client may have queued before the server stops reading from it.
const (
	maxHeldRequests = 16384
	maxHeldBytes    = 1 << 20
)

// crowded reports whether the queue is so long that reading must pause; c.mu is held.
func (c *conn) crowded() bool {
	return c.held > maxHeldBytes || int(c.waiting.Load()) > maxHeldRequests
}
