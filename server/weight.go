package server

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// The goroutine that applies a write answers the reads queued after it, and can't wait for a
// client to read the replies. So we limit the total length of the replies to queued reads to
// about this number of bytes. The reader delays the next read, and answers it itself at the
// client's pace.
const maxDue = 1 << 20

// queueRead queues a read if there is a queue and the reply fits. ok is false if the
// connection has been closed.
func (r *reader) queueRead(h proto.RequestHeader, body []byte, refuse proto.Code) (queued, ok bool) {
	c := r.c
	size := smallReply
	if refuse == proto.Ok {
		size = weight(c.s.tree, h.Op, body)
	}
	c.replies.mu.Lock()
	fits := c.replies.due+size <= maxDue
	c.replies.mu.Unlock()
	if !fits {
		c.replies.flush()
		return false, c.replies.awaitAnswers()
	}
	p := c.s.pools.newPending(c, h.Op, h.Xid)
	p.body = append(p.body, body...)
	p.ids, p.refuse, p.weight = c.session.ids.All(), refuse, size
	if c.replies.push(p) {
		return true, true
	}
	c.s.pools.freePending(p)
	return false, true
}

// Approximate lengths of replies.
const (
	smallReply  = 128
	shortData   = 1 << 10 // data up to this length need no lookup
	childWeight = 48      // a name, approximately
	aclWeight   = 64      // an entry, approximately
)

// longList is the approximate length above which it is slow to build a list of children.
const longList = 64 << 10

// takesLong reports whether op is so slow that other connections should not wait for it.
func (r *reader) takesLong(w *work, op proto.Op, body []byte) bool {
	if op.Basic() != proto.OpGetChildren {
		return op.Slow()
	}
	r.settle(w) // weight acquires the tree's lock
	return weight(r.c.s.tree, op, body) > longList
}

// weight returns an upper estimate of the length of the reply to a read. For a slow read it
// returns more than fits into the queue. If no znode has much data, it doesn't look up the
// znode, because that would cost as much as answering.
func weight(t *tree.Tree, op proto.Op, body []byte) int {
	switch op.Basic() {
	case proto.OpGetData:
		if longest := t.LongestData(); longest <= shortData {
			return smallReply + longest
		}
	case proto.OpGetChildren, proto.OpGetACL:
	case proto.OpSetWatches:
		return smallReply + 8*len(body) // one event per path
	default:
		if op.Slow() {
			return maxDue + 1
		}
		return smallReply
	}
	t.RLock()
	defer t.RUnlock()
	n := t.Get(proto.LeadingPath(body))
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
