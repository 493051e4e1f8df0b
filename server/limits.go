package server

import (
	"errors"
	"time"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/proto"
)

// ConnThrottle limits how fast sessions begin, so that a crowd of reconnecting clients
// doesn't keep the server from serving its existing clients. It is a token bucket with BLUE:
// while the bucket stays empty, the server rejects a growing part of the clients at random,
// so that it doesn't always admit the same ones. The server closes the connection of a
// rejected client.
type ConnThrottle struct {
	Tokens    int           // capacity of the bucket
	FillTime  time.Duration // how often FillCount tokens are added; at least 1 ms
	FillCount int
	// FreezeTime is how long the probability stays constant; negative: no BLUE.
	FreezeTime                 time.Duration
	DropIncrease, DropDecrease float64 // changes of the probability
	DecreaseRatio              float64 // the probability decreases while at most this part of the bucket is in use
	New, Renewed               int     // tokens for a new session, and for a renewed one
}

// RequestThrottle limits the requests that are processed at the same time. The zero
// value has no limit.
type RequestThrottle struct {
	MaxRequests int           // being processed; 0: no limit
	StallTime   time.Duration // how often to look for stale requests; default 100 ms
	// DropStale closes the connection of a waiting request that is stale. With StaleLatency,
	// a request is stale after it has waited longer than its session's timeout. If the
	// connection is closed, the request is dropped in any case.
	DropStale, StaleLatency bool
	// OpWait is how long a request may wait. After that it is answered with ThrottledOp and
	// not executed; 0: forever.
	OpWait time.Duration
}

func (r *RequestThrottle) on() bool { return r.MaxRequests > 0 || r.OpWait > 0 }

// throttle is an active RequestThrottle. Readers wait for its slots. The rest of a waiting
// client's input stays in its socket.
type throttle struct {
	cfg   RequestThrottle
	slots *limits.Slots[*conn]
}

func newThrottle(cfg RequestThrottle) *throttle {
	if !cfg.on() {
		return nil
	}
	or(&cfg.StallTime, 100*time.Millisecond)
	return &throttle{cfg: cfg, slots: limits.NewSlots[*conn](cfg.MaxRequests)}
}

// enter gets a slot for c's request, or queues c. c counts as waiting before it is in the
// queue, because it may get a slot from then on.
func (t *throttle) enter(c *conn) (now bool) {
	c.replies.barred.Store(true)
	if now = t.slots.Enter(c); now {
		c.replies.barred.Store(false)
	}
	return now
}

// run admits waiting readers, one for each slot that becomes free, until done is closed.
func (t *throttle) run(done <-chan struct{}) {
	ticker := time.NewTicker(t.cfg.StallTime)
	defer ticker.Stop()
	for {
		select {
		case <-t.slots.Free:
		case <-ticker.C:
			t.dropStale()
			continue
		case <-done:
			return
		}
		for c, ok := t.slots.Next(); ok; c, ok = t.slots.Next() {
			c.replies.unbar()
		}
	}
}

// dropStale closes connections with requests that have waited longer than the session
// timeout.
func (t *throttle) dropStale() {
	if !t.cfg.DropStale || !t.cfg.StaleLatency {
		return
	}
	for _, c := range t.slots.Waiting() {
		c.replies.mu.Lock()
		// A waiting reader doesn't change these fields.
		stale := c.replies.barred.Load() && c.s.clock()-c.reader.started > int64(time.Duration(c.session.timeout)*time.Millisecond)
		c.replies.mu.Unlock()
		if stale {
			c.complain("closing a client: its request has waited longer than the session timeout")
			c.kill()
		}
	}
}

// admit waits until the request may be processed. ok is false if the connection was closed
// in the meantime; refuse is the answer if the request must not be executed.
func (r *reader) admit(w *work, op proto.Op) (refuse proto.Code, ok bool) {
	c := r.c
	t := c.s.throttle
	if op == proto.OpPing {
		return proto.Ok, true // a waiting client must not lose its session
	}
	if t.cfg.MaxRequests > 0 {
		if !t.enter(c) {
			r.settle(w)
			c.replies.flush()
			c.s.stats.ThrottleWaits.Add(1)
			if !c.replies.awaitUnbarred() {
				if !t.slots.Leave(c) {
					t.slots.Release()
				}
				c.s.stats.StaleDropped.Add(1)
				return proto.Ok, false
			}
		}
		r.charge.slot = true
	}
	waited := c.s.clock() - r.started
	c.s.stats.ThrottleQueue.Observe(1, waited)
	if t.cfg.OpWait > 0 && waited > int64(t.cfg.OpWait) && op != proto.OpCloseSession {
		c.s.stats.ThrottledOps.Add(1)
		return proto.ErrThrottledOp, true
	}
	return proto.Ok, true
}

// charge is a request's share of the server's limits until it is answered or its
// connection ends. It moves with the request from the reader into the queue.
type charge struct {
	large int  // the request's bytes, if it is large
	slot  bool // it has a slot of the request throttle
}

// discharge returns k to the limits.
func (s *Server) discharge(k charge) {
	if k.large != 0 {
		s.large.Return(k.large)
	}
	if k.slot {
		s.throttle.slots.Release()
	}
}

// errLarge reports a large request that doesn't fit in addition to the others in flight.
var errLarge = errors.New("server: too many bytes in large requests")

// admitLarge decides about a request of n bytes, first when its length is known, and again
// when it has arrived. It counts from the second decision. If a request doesn't fit, the
// server closes the client's connection, because reading the rest of the request would need
// the same memory.
func (r *reader) admitLarge(n int, whole bool) error {
	s := r.c.s
	if !whole {
		if r.announced {
			return nil
		}
		r.announced = true
		if !s.large.Fits(n) {
			return r.refuseLarge(n)
		}
		return nil
	}
	r.announced = false
	if !s.large.Take(n) {
		return r.refuseLarge(n)
	}
	r.charge.large = n
	return nil
}

func (r *reader) refuseLarge(n int) error {
	c := r.c
	c.s.stats.LargeRejected.Add(1)
	c.complain("closing a client: other large requests use up largeRequestMaxBytes", "bytes", n, "largeRequestMaxBytes", c.s.large.Most)
	return errLarge
}

// holding is how much of the server's memory a connection uses, in bytes.
type holding struct {
	watches  int64
	output   int64 // queued for the client, or being written
	input    int64 // a long request that has not arrived in full
	requests int64 // queued requests
	ids      int64
}

func (h holding) total() int64 { return h.watches + h.output + h.input + h.requests + h.ids }

func (h holding) ofWatches() int64 { return h.watches }

func (h holding) ofOutput() int64 { return h.output }

// holds returns the memory that c uses, zero after it was closed.
func (c *conn) holds() holding {
	c.replies.mu.Lock()
	defer c.replies.mu.Unlock()
	if c.replies.closed {
		return holding{}
	}
	h := holding{output: int64(c.replies.pushing), input: c.reader.inHeld.Load(), requests: int64(c.replies.held), ids: int64(schemes.Bytes(c.session.ids.All()))}
	if c.replies.out != nil {
		h.output += int64(len(c.replies.out.B))
	}
	if w := c.session.watcher.Load(); w != nil {
		h.watches = w.Held()
	}
	return h
}

// shed closes connections until the rest use at most most bytes of the memory that part
// selects, and returns how many it closed. [limits.Excess] selects them.
func (s *Server) shed(most int64, part func(holding) int64, why string) int {
	var shares []limits.Share[consumer]
	s.clients.each(func(c *conn) {
		h := c.holds()
		if n := part(h); n > 0 {
			shares = append(shares, limits.Share[consumer]{Handle: consumer{c, h}, Host: c.host, Bytes: n})
		}
	})
	excess := limits.Excess(shares, most)
	for _, one := range excess {
		c, h := one.Handle.c, one.Handle.h
		s.stats.Dropped.Add(1)
		s.complaints.Warn(s.clock(), why, "client", c.nc.RemoteAddr(), "bytes", one.Bytes, "bound", most,
			"watches", h.watches, "output", h.output, "input", h.input, "requests", h.requests)
		c.kill()
	}
	return len(excess)
}

// consumer is a connection and its memory.
type consumer struct {
	c *conn
	h holding
}

// relieved closes the largest consumers if all connections together exceed a bound.
func (s *Server) relieved() {
	if s.queuedOut.Load() > int64(s.cfg.Limits.MaxOutputTotal) {
		s.shed(int64(s.cfg.Limits.MaxOutputTotal), holding.ofOutput, "closing the client with the most unread replies: all clients together exceed the limit")
	}
	if s.watches.Held() > s.cfg.Limits.MaxWatchBytesTotal {
		s.shed(s.cfg.Limits.MaxWatchBytesTotal, holding.ofWatches, "closing the client with the most watches: all clients together exceed the limit")
	}
}

// askRelief makes tend check the totals over all connections.
func (s *Server) askRelief() {
	select {
	case s.relieve <- struct{}{}:
	default:
	}
}

// clientPercent is the part of the memory ceiling that all connections together may use
// while memory is short.
const clientPercent = 10

// shedForMemory closes connections because memory is short, if connections use more than
// their part of the ceiling.
func (s *Server) shedForMemory() bool {
	return s.shed(s.memory.Percent(clientPercent), holding.total, "closing the client that uses the most memory: memory is nearly used up") > 0
}
