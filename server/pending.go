package server

import "github.com/zkgo/zkgo/proto"

// pending is a request that waits: in flight, or behind one that is. A
// connection's queue is a list of them in the order of the requests.
type pending struct {
	c        *conn
	next     *pending
	inFlight bool // proposed; otherwise it is answered when it comes to the head
	op       proto.Op
	xid      int32
	refuse   proto.Code // not Ok: the answer, whatever the tree holds
	arrived  int64      // clock
	ids      []proto.ID
	body     []byte // a copy; of writes none is needed
	weight   int    // of a read: about how long its reply will be
	connect  *connecting
	charge   charge
}

// maxKeptBody is the capacity of a body that a pending keeps for its next life.
const maxKeptBody = 512

// newPending returns an empty one for c.
func (s *Server) newPending(c *conn, op proto.Op, xid int32) *pending {
	p, ok := s.pendings.Get().(*pending)
	if !ok {
		p = new(pending)
	}
	p.c, p.op, p.xid, p.arrived = c, op, xid, c.started
	return p
}

// freePending takes p back. Nobody may hold it any more.
func (s *Server) freePending(p *pending) {
	body := p.body[:0]
	if cap(body) > maxKeptBody {
		body = nil
	}
	*p = pending{body: body}
	s.pendings.Put(p)
}

// push appends p to the queue, behind the replies given so far. In flight or
// not, from now on the reader answers nothing itself until the queue is empty.
// It reports false when p is not in flight and nothing is left to wait for.
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

// pop removes the head and returns the one behind it; c.mu is held.
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

// abandon empties the queue of a connection that is over. What is in flight may
// yet come back, and finds the connection closed; c.mu is held.
func (c *conn) abandon() {
	for c.head != nil {
		c.pop()
	}
}

// Bounds of what a client may have waiting before it is not read any more.
const (
	maxHeldRequests = 16384
	maxHeldBytes    = 1 << 20
)

// crowded reports whether so much waits that reading has to pause; c.mu is held.
func (c *conn) crowded() bool {
	return c.held > maxHeldBytes || int(c.waiting.Load()) > maxHeldRequests
}
