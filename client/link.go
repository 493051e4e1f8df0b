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
//   - A call is in requests from push until the reader or disconnected removes it, so every
//     caller gets exactly one signal.
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

// output is the data to send next. The writer sends many requests in one write.
type output struct {
	buf    []byte
	spare  []byte
	kicked bool
	wake   chan struct{} // capacity 1: there is output
}

// request appends a request and tells the writer.
func (o *output) request(xid int32, op proto.Op, body proto.Record) {
	o.buf = appendRequest(o.buf, xid, op, body)
	o.kick()
}

// kick tells the writer that there is output.
func (o *output) kick() {
	if !o.kicked {
		o.kicked = true
		o.wake <- struct{}{}
	}
}

// take returns the output.
func (o *output) take() []byte {
	out := o.buf
	o.buf, o.spare = o.spare[:0], out
	if cap(o.buf) > 1<<20 {
		o.buf = nil // don't keep the memory of one large request forever
	}
	o.kicked = false
	return out
}

// appendRequest appends a request as a frame. A nil body is empty.
func appendRequest(b []byte, xid int32, op proto.Op, body proto.Record) []byte {
	b, mark := proto.BeginFrame(b)
	h := proto.RequestHeader{Xid: xid, Op: op}
	b = h.Append(b)
	if body != nil {
		b = body.Append(b)
	}
	return proto.EndFrame(b, mark)
}

// requests are those without a reply. Replies come in the same order, except those to
// auth requests, which may overtake others.
type requests struct {
	pending queue[*call]
	auths   queue[*authCall]
	batches queue[batch]
	xid     int32
	newest  uint64 // the seq of the newest call in pending
	sent    uint64 // the writer has dequeued calls up to this seq
}

// add gives a call its number and appends it to pending.
func (q *requests) add(k *call) {
	if k.xid >= 0 {
		if q.xid++; q.xid <= 0 {
			q.xid = 1
		}
		k.xid = q.xid
	}
	q.newest++
	k.seq, k.taken = q.newest, false
	q.pending.push(k)
}

// removeLast is the inverse of add.
func (q *requests) removeLast() {
	q.pending.popLast()
	q.newest--
}

// taken records that the writer has dequeued all requests.
func (q *requests) taken(now time.Time) {
	if q.newest != q.sent {
		q.sent = q.newest
		q.batches.push(batch{q.newest, now})
	}
}

// answered removes the oldest pending call, which a reply must answer, and returns when it
// was sent.
func (q *requests) answered(h *proto.ReplyHeader) (k *call, at time.Time, err error) {
	if q.pending.n == 0 {
		return nil, at, fmt.Errorf("%w: an unexpected reply with xid %d", ErrProtocol, h.Xid)
	}
	k = *q.pending.front()
	if k.xid != h.Xid {
		return nil, at, fmt.Errorf("%w: a reply with xid %d, the next is %d (%v)", ErrProtocol, h.Xid, k.xid, k.op)
	}
	if k.seq > q.sent {
		return nil, at, fmt.Errorf("%w: a reply to xid %d (%v), which was not sent yet", ErrProtocol, h.Xid, k.op)
	}
	q.pending.pop()
	for q.batches.n > 1 && q.batches.front().seq < k.seq {
		q.batches.pop()
	}
	b := *q.batches.front()
	if b.seq == k.seq {
		q.batches.pop()
	}
	return k, b.at, nil
}

// times are when things last happened on a link.
type times struct {
	began     time.Time
	sent      time.Time
	received  time.Time
	pingAt    time.Time // when the unanswered ping was sent, if any
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
	l.requests.add(k)
	l.out.buf = k.appendFrame(l.out.buf)
}

// unpush removes what enqueue has just appended: a call, after the sync first unless that is
// nil. The caller holds core.mu.
func (l *link) unpush(first *call, before int) {
	l.out.buf = l.out.buf[:before]
	l.requests.removeLast()
	if first != nil {
		l.requests.removeLast()
		l.core.free(first)
	}
}

// pushAuth appends an auth request to the output. The caller holds core.mu.
func (l *link) pushAuth(p *authCall) {
	l.requests.auths.push(p)
	l.out.request(proto.XidAuth, proto.OpAuth, &proto.AuthPacket{Scheme: p.scheme, Auth: p.credentials})
}

// ping sends a ping if none is in flight. The caller holds core.mu.
func (l *link) ping(now time.Time) {
	if l.times.pingAt.IsZero() {
		l.times.pingAt, l.times.sent = now, now
		l.out.request(proto.XidPing, proto.OpPing, nil)
	}
}

// take returns the output. The caller holds core.mu. We read the clock before the write,
// because the session's deadline must not count from a later time.
func (l *link) take() []byte {
	now := time.Now()
	l.times.sent = now
	l.requests.taken(now)
	return l.out.take()
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
