package client

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// link is one connection after its handshake. Its writer sends what callers have appended
// to out, so one write can carry many requests. Its reader delivers the replies to the
// calls in pending. Both requests and replies are in the order of pending.
type link struct {
	core    *core
	conn    net.Conn
	name    string // of the server, as configured
	addr    string
	session int64
	fresh   bool          // the session began on this link
	wake    chan struct{} // capacity 1: there is output
	done    chan struct{} // closed when the link has failed
	wg      sync.WaitGroup
	once    sync.Once
	err     error // why the link failed; valid after done is closed

	// guarded by core.mu
	readOnly  bool
	out       []byte // the writer takes this next
	spare     []byte
	kicked    bool
	xid       int32
	pending   queue[*call]
	auths     queue[*authCall]
	seq       uint64 // the seq of the newest call in pending
	sent      uint64 // calls up to this seq were taken for writing to the connection
	batches   queue[batch]
	pingAt    time.Time // when the unanswered ping was sent; zero: none
	lastSend  time.Time
	lastRecv  time.Time
	began     time.Time
	syncAt    time.Time // when the last sync for leases was sent
	pingTried time.Time
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
		if l.xid++; l.xid <= 0 {
			l.xid = 1
		}
		k.xid = l.xid
	}
	l.seq++
	k.seq, k.taken = l.seq, false
	l.out = k.appendFrame(l.out)
	l.pending.push(k)
}

// unpush removes what enqueue has just appended. The caller holds core.mu.
func (l *link) unpush(k, first *call, before int) {
	l.out = l.out[:before]
	for _, x := range []*call{k, first} {
		if x != nil {
			l.pending.popLast()
			l.seq--
		}
	}
	if first != nil {
		l.core.free(first)
	}
}

// kick tells the writer that there is output. The caller holds core.mu.
func (l *link) kick() {
	if !l.kicked {
		l.kicked = true
		l.wake <- struct{}{}
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
		case <-l.wake:
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
	out := l.out
	l.out, l.spare = l.spare[:0], out
	if cap(l.out) > 1<<20 {
		l.out = nil // we don't keep the memory of one large request forever
	}
	l.kicked = false
	now := time.Now()
	l.lastSend = now
	if l.seq != l.sent {
		l.sent = l.seq
		l.batches.push(batch{l.seq, now})
	}
	return out
}

// ping sends a ping if none is in flight. The caller holds core.mu.
func (l *link) ping(now time.Time) {
	if !l.pingAt.IsZero() {
		return
	}
	l.pingAt, l.lastSend = now, now
	var mark int
	l.out, mark = proto.BeginFrame(l.out)
	h := proto.RequestHeader{Xid: proto.XidPing, Op: proto.OpPing}
	l.out = proto.EndFrame(h.Append(l.out), mark)
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
