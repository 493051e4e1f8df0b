package server

import (
	"errors"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// A reader that answers many pipelined requests holds the tree's read lock for at most
// maxLocked requests, or until it has flushAbove bytes of replies. Then a writer can
// get the lock, and the client gets its answers.
const (
	maxLocked  = 128
	flushAbove = 64 << 10
)

// spared is how many requests a client may have in flight although
// globalOutstandingLimit is reached. If a client has more, the server reads its next
// request only after all of them are answered, so a greedy client gains nothing over
// the others by sending more. Clients with a few requests each are stopped where their
// input ends, as always: stopping them at each request would cost a third of their
// throughput.
const spared = 128

// handle handles all requests that have arrived. It returns false when the connection
// ends.
func (c *conn) handle() bool {
	c.started, c.current = c.s.clock(), false
	c.last.Store(c.started)
	if !c.heard.Load() {
		c.heard.Store(true)
	}
	w := c.s.getWork(c)
	ok := true
	requests := 0
	for ok && !c.ended {
		frame, whole, err := c.next()
		if err != nil || !whole {
			ok = err == nil
			if errors.Is(err, errFrame) {
				c.garbled(err)
			}
			break
		}
		requests++
		w.got++
		w.bytes += len(frame)
		ok = c.request(w, frame)
		if c.charge != (charge{}) {
			c.s.discharge(c.charge)
			c.charge = charge{}
		}
		if c.over && c.waiting.Load() > spared {
			c.over = false
			c.settle(w)
			c.flush()
			ok = ok && c.pace()
		}
		if w.replies != nil && len(w.replies.b) > flushAbove || w.n >= maxLocked {
			c.settle(w)
			c.flush()
			ok = ok && (c.ended || c.awaitOutput())
		}
	}
	c.settle(w)
	c.flush()
	switch {
	case requests >= manyRequests:
		c.busy = busyFor
	case c.busy > 0:
		c.busy--
	}
	return ok && c.pace()
}

// request handles one request. It returns false if the connection must be closed
// without an answer.
func (c *conn) request(w *work, frame []byte) bool {
	r := proto.AliasReader(frame)
	var h proto.RequestHeader
	if h.Decode(&r); r.Err() != nil {
		return c.garbled(r.Err())
	}
	w.last.note(h)
	if c.s.cfg.Interceptor != nil {
		return c.intercept(w, h, r.Rest())
	}
	return c.execute(w, h, r.Rest())
}

// execute executes a request. It returns false as request does.
func (c *conn) execute(w *work, h proto.RequestHeader, body []byte) bool {
	if c.mayNot(h.Op) {
		c.s.stats.unauthenticated.Add(1)
		c.complain("closing a client that has to authenticate before anything else", "schemes", strings.Join(c.s.cfg.RequireAuth, ","))
		return c.turnAway(w, h, proto.ErrSessionClosedRequireSASL)
	}
	switch h.Op {
	case proto.OpAuth, proto.OpSASL:
		c.leaveWorker() // authentication may ask an external provider
		if h.Op == proto.OpAuth {
			return c.authenticate(w, h, body)
		}
		return c.negotiate(w, h, body)
	}
	if c.s.throttle != nil {
		refuse, ok := c.admit(w, h.Op)
		if !ok {
			return false
		}
		if refuse != proto.Ok {
			return c.read(w, h, nil, refuse)
		}
	}
	switch {
	case h.Op.Transaction(), h.Op == proto.OpSync:
		return c.write(w, h, body)
	case h.Op.Kind() == proto.Unknown:
		c.ended, body = true, nil // the answer is Unimplemented
	}
	return c.read(w, h, body, proto.Ok)
}

// read answers a request from the tree: now if nothing of the session is in flight,
// otherwise when its turn comes. refuse is the answer if it is not Ok.
func (c *conn) read(w *work, h proto.RequestHeader, body []byte, refuse proto.Code) bool {
	if c.linear && !c.current && h.Op.Kind() == proto.Read && !c.barrier(w) {
		return false
	}
	if c.waiting.Load() != 0 {
		c.settle(w)
		if queued, ok := c.queueRead(h, body, refuse); queued || !ok {
			return ok
		}
	}
	if c.worker != nil && refuse == proto.Ok && c.takesLong(w, h.Op, body) {
		c.leaveWorker()
	}
	q := request{c: c, op: h.Op, xid: h.Xid, refuse: refuse, body: body, ids: c.identities(), reads: &w.reads}
	if (h.Op == proto.OpGetAllChildrenNumber || h.Op == proto.OpGetEphemerals) && refuse == proto.Ok {
		c.settle(w)
		c.s.tree.RLock()
		w.locked = true
		c.s.prepare(&q)
	}
	if !w.locked {
		c.s.tree.RLock()
		w.locked = true
	}
	if w.replies == nil {
		w.replies = c.s.bufs.get(smallBuffer)
	}
	before := len(w.replies.b)
	w.replies.b = c.s.answer(&q, w.replies.b)
	w.sizes.note(len(w.replies.b) - before - proto.LengthSize)
	w.zxid = q.zxid
	w.n++
	if slow(h.Op) {
		w.n = maxLocked
	}
	w.done++
	if q.hangUp {
		c.endWith()
	}
	return true
}

// garbled counts a client that doesn't speak the protocol. It returns false: the
// connection must be closed.
func (c *conn) garbled(err error) bool {
	c.s.stats.malformed.Add(1)
	c.complain("closing a client: what it sends is not the protocol of ZooKeeper, or longer than jute.maxbuffer", "error", err)
	return false
}

// turnAway answers h with a code and no zxid, and closes the connection.
func (c *conn) turnAway(w *work, h proto.RequestHeader, code proto.Code) bool {
	c.reply(w, proto.ReplyHeader{Xid: h.Xid, Err: code}, nil)
	c.endWith()
	return true
}

// reply appends a reply that overtakes the queued requests.
func (c *conn) reply(w *work, h proto.ReplyHeader, body proto.Record) {
	if w.replies == nil {
		w.replies = c.s.bufs.get(smallBuffer)
	}
	b, mark := proto.BeginFrame(w.replies.b)
	b = h.Append(b)
	if body != nil {
		b = body.Append(b)
	}
	w.replies.b = proto.EndFrame(b, mark)
	w.done++
}

// endWith closes the connection after its output has been written.
func (c *conn) endWith() {
	c.ended = true
	c.mu.Lock()
	c.settleReplies()
	c.hangUp = true
	if c.out == nil && !c.writing && !c.closed {
		c.shut()
		c.s.flushers.add(c)
	}
	c.mu.Unlock()
}

// settle moves the replies into the output before it releases the tree's lock: after
// that, an event may be queued.
func (c *conn) settle(w *work) {
	if w.got != 0 || w.done != 0 || w.replies != nil && len(w.replies.b) > 0 {
		c.mu.Lock()
		c.settleReplies()
		c.mu.Unlock()
	}
	if w.locked {
		w.locked, w.n = false, 0
		c.s.tree.RUnlock()
	}
}

// settleReplies is settle without releasing the tree's lock; c.mu is held.
func (c *conn) settleReplies() {
	w := c.work
	if w == nil {
		return
	}
	c.count(w)
	if w.replies != nil && len(w.replies.b) > 0 {
		w.replies = c.queueBuffer(w.replies)
	}
}

// pace makes the reader wait if reading on would only lengthen the queues. It returns
// false when the connection has been closed.
func (c *conn) pace() bool {
	if c.ended {
		// The last answer may still be in flight or unwritten. Wait until the
		// connection closes.
		return c.await(func() bool { return false })
	}
	s := c.s
	if s.audit != nil {
		s.audit.Wait(s.done)
	}
	if c.waiting.Load() == 0 {
		return c.awaitOutput()
	}
	if s.outstanding.Load() >= int64(s.cfg.GlobalOutstanding) {
		return c.await(func() bool { return c.head == nil })
	}
	return c.await(func() bool { return !c.crowded() })
}

// awaitOutput waits while another goroutine is writing to the client and much more
// output is queued. It returns false when the connection has been closed.
func (c *conn) awaitOutput() bool {
	return c.await(func() bool { return !c.writing || c.out == nil || len(c.out.b) < flushAbove })
}
