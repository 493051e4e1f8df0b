package client

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// link is one connection after its handshake. Its writer sends what callers have
// appended to out. Its reader delivers the replies to the calls in requests.
//
// Invariants:
//   - A call is in requests from push until the reader or disconnected takes it out. So
//     every caller gets exactly one signal.
//   - Output and requests change together while core.mu is held: a reply is matched with a
//     request by its position alone.
type link struct {
	target
	core    *core
	conn    net.Conn
	session int64
	fresh   bool          // the session began on this link
	done    chan struct{} // closed when the link has failed
	wg      sync.WaitGroup
	once    sync.Once
	err     error // why the link failed; valid after done is closed

	// guarded by core.mu
	readOnly bool
	out      output
	requests requests
	times    times
}

// output is what the writer sends next, many requests in one write.
type output struct {
	buf    []byte
	spare  []byte
	kicked bool
	wake   chan struct{} // capacity 1: there is output
}

// requests are those without a reply. Replies come in the same order, except those to
// auth requests, which may overtake others.
type requests struct {
	pending queue[*call]
	auths   queue[*authCall]
	batches queue[batch]
	xid     int32
	newest  uint64 // the seq of the newest call in pending
	sent    uint64 // calls up to this seq were taken for writing to the connection
}

// times are when things last happened on a link.
type times struct {
	began     time.Time
	sent      time.Time
	received  time.Time
	pingAt    time.Time // when the unanswered ping was sent; zero: none
	pingTried time.Time
	syncAt    time.Time // when the last sync for leases was sent
}

// batch records when calls were sent, for the session's deadline.
type batch struct {
	seq uint64 // the seq of its last call
	at  time.Time
}

// authCall is a pending auth request. Its reply may overtake other replies.
type authCall struct {
	auth
	ready chan Code // capacity 1
}

// push appends a call to the output. The caller holds core.mu.
func (l *link) push(k *call) {
	if k.xid >= 0 {
		if l.requests.xid++; l.requests.xid <= 0 {
			l.requests.xid = 1
		}
		k.xid = l.requests.xid
	}
	l.requests.newest++
	k.seq, k.taken = l.requests.newest, false
	l.out.buf = k.appendFrame(l.out.buf)
	l.requests.pending.push(k)
}

// unpush removes what enqueue has just appended. The caller holds core.mu.
func (l *link) unpush(k, first *call, before int) {
	l.out.buf = l.out.buf[:before]
	for _, x := range []*call{k, first} {
		if x != nil {
			l.requests.pending.popLast()
			l.requests.newest--
		}
	}
	if first != nil {
		l.core.free(first)
	}
}

// kick tells the writer that there is output. The caller holds core.mu.
func (l *link) kick() {
	if !l.out.kicked {
		l.out.kicked = true
		l.out.wake <- struct{}{}
	}
}

// fail ends the link with a reason. Only the first call counts.
func (l *link) fail(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.done)
		_ = l.conn.Close()
	})
}

// write is the writer goroutine.
func (l *link) write() {
	defer l.wg.Done()
	for {
		select {
		case <-l.out.wake:
		case <-l.done:
			return
		}
		l.core.mu.Lock()
		out := l.take()
		l.core.mu.Unlock()
		if _, err := l.conn.Write(out); err != nil {
			l.fail(fmt.Errorf("writing to %s: %w", l.addr, err))
			return
		}
	}
}

// take returns the output. The caller holds core.mu. We read the clock before the write,
// because the session's deadline must not count from a later time.
func (l *link) take() []byte {
	out := l.out.buf
	l.out.buf, l.out.spare = l.out.spare[:0], out
	if cap(l.out.buf) > 1<<20 {
		l.out.buf = nil // don't keep the memory of one large request forever
	}
	l.out.kicked = false
	now := time.Now()
	l.times.sent = now
	if l.requests.newest != l.requests.sent {
		l.requests.sent = l.requests.newest
		l.requests.batches.push(batch{l.requests.newest, now})
	}
	return out
}

// ping sends a ping if none is in flight. The caller holds core.mu.
func (l *link) ping(now time.Time) {
	if !l.times.pingAt.IsZero() {
		return
	}
	l.times.pingAt, l.times.sent = now, now
	var mark int
	l.out.buf, mark = proto.BeginFrame(l.out.buf)
	h := proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}
	l.out.buf = proto.EndFrame(h.Append(l.out.buf), mark)
	l.kick()
}

// queue is a FIFO queue in a ring buffer.
type queue[T any] struct {
	ring []T
	head int
	n    int
}

func (q *queue[T]) push(v T) {
	if q.n == len(q.ring) {
		ring := make([]T, max(16, 2*q.n))
		for i := range q.n {
			ring[i] = q.ring[(q.head+i)%len(q.ring)]
		}
		q.ring, q.head = ring, 0
	}
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = v
	q.n++
}

func (q *queue[T]) front() *T { return &q.ring[q.head] }

func (q *queue[T]) pop() (v T, ok bool) {
	var zero T
	if q.n == 0 {
		return zero, false
	}
	v, q.ring[q.head] = q.ring[q.head], zero
	q.head = (q.head + 1) & (len(q.ring) - 1)
	q.n--
	return v, true
}

func (q *queue[T]) popLast() {
	var zero T
	q.n--
	q.ring[(q.head+q.n)&(len(q.ring)-1)] = zero
}
