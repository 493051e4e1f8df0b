package server

import "github.com/zkgo/zkgo/proto"

// Reads behind a write are answered by the goroutine that applies it, which
// cannot wait for a client to take what it asked for. So only as many may queue
// as have replies of about this length together. The reader waits with the rest
// and answers it itself, at the client's pace.
const maxDue = 1 << 20

// queueRead puts a read into the queue if there is one and its reply is not too
// much for it. ok is false when the connection has been closed.
func (c *conn) queueRead(h proto.RequestHeader, body []byte, refuse proto.Code) (queued, ok bool) {
	weight := smallReply
	if refuse == proto.Ok {
		weight = c.s.weight(h.Op, body)
	}
	c.mu.Lock()
	fits := c.due+weight <= maxDue
	c.mu.Unlock()
	if !fits {
		c.flush()
		return false, c.await(func() bool { return c.head == nil })
	}
	p := c.s.newPending(c, h.Op, h.Xid)
	p.body = append(p.body, body...)
	p.ids, p.refuse, p.weight = c.identities(), refuse, weight
	if c.push(p) {
		return true, true
	}
	c.s.freePending(p)
	return false, true
}

// What replies weigh.
const (
	smallReply  = 128
	shortData   = 1 << 10 // and less are not looked at
	childWeight = 48      // a name, roughly
	aclWeight   = 64      // an entry, roughly
)

// slow reports whether op may take long whatever the length of its reply.
func slow(op proto.Op) bool {
	return op == proto.OpMultiRead || op == proto.OpGetAllChildrenNumber || op == proto.OpGetEphemerals
}

// longList is about how long a list of children is that takes long to make.
const longList = 64 << 10

// takesLong reports whether others should not wait while op is answered.
func (c *conn) takesLong(w *work, op proto.Op, body []byte) bool {
	if op != proto.OpGetChildren && op != proto.OpGetChildren2 {
		return slow(op)
	}
	c.settle(w) // weight takes the tree's lock
	return c.s.weight(op, body) > longList
}

// weight is about how long the reply to a read would be now, or more, and more than
// fits for one that takes long to make. Where no znode has much data none is looked
// for: that would take as long as the answer.
func (s *Server) weight(op proto.Op, body []byte) int {
	switch op {
	case proto.OpGetData:
		if longest := s.tree.LongestData(); longest <= shortData {
			return smallReply + longest
		}
	case proto.OpGetChildren, proto.OpGetChildren2, proto.OpGetACL:
	case proto.OpSetWatches, proto.OpSetWatches2:
		return smallReply + 8*len(body) // an event for every path
	default:
		if slow(op) {
			return maxDue + 1
		}
		return smallReply
	}
	r := proto.AliasReader(body)
	path := r.String()
	s.tree.RLock()
	defer s.tree.RUnlock()
	n := s.tree.Get(path)
	switch {
	case n == nil:
		return smallReply
	case op == proto.OpGetData:
		return smallReply + len(n.Data())
	case op == proto.OpGetACL:
		return smallReply + aclWeight*len(n.ACL())
	}
	return smallReply + childWeight*n.NumChildren()
}
