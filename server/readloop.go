package server

import (
	"errors"
	"strings"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/proto"
)

// A reader that answers many pipelined requests holds the tree's read lock for at most
// maxLocked requests, or until it has flushAbove bytes of replies. Then a writer can
// get the lock, and the client gets its answers.
const (
	maxLocked  = 128
	flushAbove = 64 << 10
)

// spared is how many requests a client may have in flight although globalOutstandingLimit is
// reached. If a client has more, the server reads its next request only after all these
// requests are answered, so a greedy client gets no advantage by sending more. Clients with
// a few requests each are stopped at the end of their input, as usual: stopping them at each
// request would cost a third of their throughput.
const spared = 128

// handle handles all requests that have arrived. It returns false when the connection
// ends.
func (r *reader) handle() bool {
	c := r.c
	r.started, r.current = c.s.clock(), false
	c.session.last.Store(r.started)
	if !c.session.heard.Load() {
		c.session.heard.Store(true)
	}
	w := r.getWork()
	ok := true
	requests := 0
	for ok && !r.ended {
		frame, whole, err := r.next()
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
		ok = r.request(w, frame)
		if r.charge != (charge{}) {
			c.s.discharge(r.charge)
			r.charge = charge{}
		}
		if r.over && c.replies.waiting.Load() > spared {
			r.over = false
			r.settle(w)
			c.replies.flush()
			ok = ok && r.pace()
		}
		if w.replies != nil && len(w.replies.B) > flushAbove || w.n >= maxLocked {
			r.settle(w)
			c.replies.flush()
			ok = ok && (r.ended || c.replies.awaitOutput())
		}
	}
	r.settle(w)
	c.replies.flush()
	switch {
	case requests >= manyRequests:
		r.busy = busyFor
	case r.busy > 0:
		r.busy--
	}
	return ok && r.pace()
}

// request handles one request. It returns false if the connection must be closed
// without an answer.
func (r *reader) request(w *work, frame []byte) bool {
	in := proto.AliasReader(frame)
	var h proto.RequestHeader
	if h.Decode(&in); in.Err() != nil {
		return r.c.garbled(in.Err())
	}
	w.last.Note(h)
	if r.c.s.cfg.Env.Interceptor != nil {
		return r.intercept(w, h, in.Rest())
	}
	return r.execute(w, h, in.Rest())
}

// execute executes a request. Its result is the same as request's.
func (r *reader) execute(w *work, h proto.RequestHeader, body []byte) bool {
	c := r.c
	if c.session.mayNot(h.Op) {
		c.s.stats.Unauthenticated.Add(1)
		c.complain("closing a client that has not authenticated (enforce.auth)", "schemes", strings.Join(c.s.cfg.Auth.Require, ","))
		return c.turnAway(w, h, proto.ErrSessionClosedRequireSASL)
	}
	switch h.Op {
	case proto.OpAuth, proto.OpSASL:
		r.leaveWorker() // authentication may ask an external provider
		if h.Op == proto.OpAuth {
			return c.authenticate(w, h, body)
		}
		return c.negotiate(w, h, body)
	}
	if c.s.throttle != nil {
		refuse, ok := r.admit(w, h.Op)
		if !ok {
			return false
		}
		if refuse != proto.Ok {
			return r.read(w, h, nil, refuse)
		}
	}
	switch {
	case h.Op.Transaction(), h.Op == proto.OpSync:
		return r.write(w, h, body)
	case h.Op.Kind() == proto.Unknown:
		r.ended, body = true, nil // the answer is Unimplemented
	}
	return r.read(w, h, body, proto.Ok)
}

// read answers a request from the tree: immediately if no request of the session is in
// flight, otherwise in its turn. If refuse is not Ok, it is the answer.
func (r *reader) read(w *work, h proto.RequestHeader, body []byte, refuse proto.Code) bool {
	c := r.c
	if c.session.linear && !r.current && h.Op.Kind() == proto.Read && !r.barrier(w) {
		return false
	}
	if c.replies.waiting.Load() != 0 {
		r.settle(w)
		if queued, ok := r.queueRead(h, body, refuse); queued || !ok {
			return ok
		}
	}
	if r.worker != nil && refuse == proto.Ok && r.takesLong(w, h.Op, body) {
		r.leaveWorker()
	}
	q := request{c: c, op: h.Op, xid: h.Xid, refuse: refuse, body: body, ids: c.session.ids.All(), reads: &w.reads}
	if (h.Op == proto.OpGetAllChildrenNumber || h.Op == proto.OpGetEphemerals) && refuse == proto.Ok {
		r.settle(w)
		c.s.tree.RLock()
		w.locked = true
		q.prepare()
	}
	if !w.locked {
		c.s.tree.RLock()
		w.locked = true
	}
	if w.replies == nil {
		w.replies = c.s.pools.Get(buffer.Small)
	}
	before := len(w.replies.B)
	w.replies.B = q.answer(w.replies.B)
	w.sizes.Note(len(w.replies.B) - before - proto.LengthSize)
	w.zxid = q.zxid
	w.n++
	if h.Op.Slow() {
		w.n = maxLocked
	}
	w.done++
	if q.hangUp {
		c.endWith()
	}
	return true
}

// garbled counts a client that doesn't speak the protocol. It returns false, because the
// connection must be closed.
func (c *conn) garbled(err error) bool {
	c.s.stats.Malformed.Add(1)
	c.complain("closing a client: its request is malformed, or longer than jute.maxbuffer", "error", err)
	return false
}

// turnAway answers h with a code and no zxid, and closes the connection.
func (c *conn) turnAway(w *work, h proto.RequestHeader, code proto.Code) bool {
	c.reader.reply(w, proto.ReplyHeader{Xid: h.Xid, Err: code}, nil)
	c.endWith()
	return true
}

// reply appends a reply that overtakes the queued requests.
func (r *reader) reply(w *work, h proto.ReplyHeader, body proto.Record) {
	if w.replies == nil {
		w.replies = r.c.s.pools.Get(buffer.Small)
	}
	b, mark := proto.BeginFrame(w.replies.B)
	b = h.Append(b)
	if body != nil {
		b = body.Append(b)
	}
	w.replies.B = proto.EndFrame(b, mark)
	w.done++
}

// endWith closes the connection after its output has been written.
func (c *conn) endWith() {
	c.reader.ended = true
	c.replies.mu.Lock()
	c.replies.settle()
	c.replies.hangUp = true
	if c.replies.out == nil && !c.replies.writing && !c.replies.closed {
		c.replies.shut()
		c.s.flushers.add(c)
	}
	c.replies.mu.Unlock()
}

// settle moves the replies into the output before it releases the tree's lock: after
// that, an event may be queued.
func (r *reader) settle(w *work) {
	c := r.c
	if w.got != 0 || w.done != 0 || w.replies != nil && len(w.replies.B) > 0 {
		c.replies.mu.Lock()
		c.replies.settle()
		c.replies.mu.Unlock()
	}
	if w.locked {
		w.locked, w.n = false, 0
		c.s.tree.RUnlock()
	}
}

// pace makes the reader wait if more input would only lengthen the queues. It returns false
// when the connection has been closed.
func (r *reader) pace() bool {
	c := r.c
	if r.ended {
		// The last answer may still be in flight or unwritten. Wait until the
		// connection closes.
		return c.replies.await(func() bool { return false })
	}
	s := c.s
	if s.audit != nil {
		s.audit.Wait(s.done)
	}
	if c.replies.waiting.Load() == 0 {
		return c.replies.awaitOutput()
	}
	if s.outstanding.Load() >= int64(s.cfg.Limits.GlobalOutstanding) {
		return c.replies.awaitAnswers()
	}
	return c.replies.await(func() bool { return !c.replies.crowded() })
}
