package server

import (
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/proto"
)

// replyQueue sends replies and events to the client in order. Replies that are ready are in
// out, to be written by one goroutine at a time. Requests that can't be answered yet are in
// a list, to be answered by the goroutine that applies the log.
//
// The lock mu owns it: the reader, the applying goroutine and the flushers use it. The
// comments name the fields with another owner.
type replyQueue struct {
	c *conn

	mu        sync.Mutex
	out       *buffer.Buffer // queued for the client
	writing   bool           // a goroutine is writing bytes from out; no other may write
	pushing   int            // bytes that are being written, no longer in out
	sentBytes int64          // bytes that have been written
	closed    bool           // nothing more may be queued
	hangUp    bool           // close once out has been written
	counters  stats.Conn

	head *pending
	tail *pending
	held int           // bytes of requests in the list
	due  int           // approximate length of the replies to the queued reads
	wait chan struct{} // closed to wake the reader while it waits for the list or the output to drain

	// waiting counts the list. Only the reader adds to it: once the reader has seen 0, it
	// stays 0.
	waiting atomic.Int32
	// barred is set while the reader waits in barrier or for the request throttle.
	barred atomic.Bool
	dirty  bool            // the connection is in fsm.dirty; only the applying goroutine uses it
	slow   limits.Progress // only the goroutine that tends the connections uses it
}

// shut makes q refuse all further output; q.mu is held.
func (q *replyQueue) shut() {
	q.closed = true
	if q.out != nil {
		q.c.s.queuedOut.Add(-int64(len(q.out.B)))
		q.c.s.pools.Put(q.out)
		q.out = nil
	}
	q.wakeReader()
}

func (q *replyQueue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// wakeReader wakes the reader if it waits; q.mu is held.
func (q *replyQueue) wakeReader() {
	if q.wait != nil {
		close(q.wait)
		q.wait = nil
	}
}

// await blocks the reader until ready returns true. It returns false if the connection
// is closed first. ready is called with q.mu held.
func (q *replyQueue) await(ready func() bool) bool {
	q.mu.Lock()
	for !q.closed && !ready() {
		if q.wait == nil {
			q.wait = make(chan struct{})
		}
		wait := q.wait
		q.mu.Unlock()
		q.c.reader.leaveWorker()
		<-wait
		q.mu.Lock()
	}
	ok := !q.closed
	q.mu.Unlock()
	return ok
}

// awaitOutput waits while another goroutine is writing to the client and much more
// output is queued. It returns false when the connection has been closed.
func (q *replyQueue) awaitOutput() bool {
	return q.await(func() bool { return !q.writing || q.out == nil || len(q.out.B) < flushAbove })
}

// awaitAnswers waits until no request is queued. It returns false when the connection has
// been closed.
func (q *replyQueue) awaitAnswers() bool { return q.await(func() bool { return q.head == nil }) }

// settle moves the replies of the reader into the output; q.mu is held. The reader calls it.
func (q *replyQueue) settle() {
	w := q.c.reader.work
	if w == nil {
		return
	}
	q.count(w)
	if w.replies != nil && len(w.replies.B) > 0 {
		w.replies = q.queueBuffer(w.replies)
	}
}

// awaitUnbarred waits for unbar. It returns false when the connection has been closed.
func (q *replyQueue) awaitUnbarred() bool {
	return q.await(func() bool { return !q.barred.Load() })
}

// unbar lets the reader continue.
func (q *replyQueue) unbar() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.barred.Store(false)
	q.wakeReader()
}

// waits reports whether the client waits for us, which may be why it sends nothing.
func (q *replyQueue) waits() bool { return q.waiting.Load() != 0 || q.barred.Load() }

// mute makes sure that nothing queued from now on is sent: it simulates a writer that never
// ends, so no other can begin.
func (q *replyQueue) mute() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writing = true
}

// push appends p to the queue, after the replies made so far. From then on, until the
// queue is empty, the reader itself answers nothing. It returns false if the connection
// is closed, or if p is not in flight and the queue is empty.
func (q *replyQueue) push(p *pending) bool {
	c := q.c
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !p.inFlight && q.head == nil {
		return false
	}
	q.settle()
	if q.tail == nil {
		q.head = p
	} else {
		q.tail.next = p
	}
	q.tail = p
	q.held += len(p.body)
	q.due += p.weight
	q.waiting.Add(1)
	if p.inFlight {
		if c.s.outstanding.Add(1) > int64(c.s.cfg.Limits.GlobalOutstanding) {
			c.reader.over = true
		}
		if p.op == proto.OpSync {
			c.s.stats.Syncs.Add(1)
		}
	}
	p.charge, c.reader.charge = c.reader.charge, charge{}
	return true
}

// pop removes the head and returns the next one; q.mu is held.
func (q *replyQueue) pop() *pending {
	c := q.c
	p := q.head
	q.head = p.next
	if q.head == nil {
		q.tail = nil
	}
	q.held -= len(p.body)
	q.due -= p.weight
	q.waiting.Add(-1)
	if p.inFlight {
		c.s.outstanding.Add(-1)
		if p.op == proto.OpSync {
			c.s.stats.Syncs.Add(-1)
		}
	}
	if p.charge != (charge{}) {
		c.s.discharge(p.charge)
	}
	return q.head
}

// abandon empties the queue of a connection that has ended. A request in flight may
// still complete, and then finds the connection closed; q.mu is held.
func (q *replyQueue) abandon() {
	for q.head != nil {
		q.pop()
	}
}

// Limits of a client's queue. Above them, the server stops reading from the client.
const (
	maxHeldRequests = 16384
	maxHeldBytes    = 1 << 20
)

// crowded reports whether the queue is so long that reading must pause; q.mu is held.
func (q *replyQueue) crowded() bool {
	return q.held > maxHeldBytes || int(q.waiting.Load()) > maxHeldRequests
}

// count adds the reader's work to the counters; q.mu is held.
func (q *replyQueue) count(w *work) {
	c := q.c
	if w.got == 0 && w.done == 0 {
		return
	}
	st := &c.s.stats
	k := &q.counters
	if w.got > 0 {
		k.Received += int64(w.got)
		st.Received.Add(int64(w.got))
		st.BytesIn.Add(int64(w.bytes))
		if w.last.Xid < 0 {
			w.last.Xid = k.Last.Xid
		}
		k.Last = w.last
	}
	if n := int64(w.done); n > 0 {
		now := c.s.clock()
		k.Sent += n
		k.LastResponse = now
		if w.zxid != 0 {
			k.LastZxid = w.zxid
		}
		k.CountLatency(n, now-c.reader.started)
		st.Sent.Add(n)
		st.CountLatency(n, now-c.reader.started)
		st.Reads.Observe(n, now-c.reader.started)
		st.CountReplies(&w.sizes)
	}
	w.reads.Flush()
	w.got, w.done, w.bytes = 0, 0, 0
}

// countReceived counts input that isn't a request of a session: a handshake, or a
// four-letter word.
func (q *replyQueue) countReceived(bytes int) {
	q.c.s.stats.Received.Add(1)
	q.c.s.stats.BytesIn.Add(int64(bytes))
	q.mu.Lock()
	q.counters.Received++
	q.mu.Unlock()
}

// countLate counts the answer to a queued request; q.mu is held.
func (q *replyQueue) countLate(p *pending, now, zxid int64) {
	c := q.c
	d := max(now-p.arrived, 0)
	q.counters.Sent++
	q.counters.LastResponse, q.counters.LastZxid = now, zxid
	q.counters.CountLatency(1, d)
	c.s.stats.CountLatency(1, d)
	if p.inFlight && p.op != proto.OpSync {
		c.s.stats.Updates.Observe(1, d)
	} else {
		c.s.stats.Reads.Observe(1, d)
		c.s.stats.Waited.Observe(1, d)
	}
}

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
	body     []byte // a copy, for a read
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
