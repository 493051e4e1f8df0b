package server

import (
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/proto"
)

// RequestThrottle limits the requests that are processed at the same time. The zero
// value has no limit.
type RequestThrottle struct {
	MaxRequests int           // being processed; 0: no limit
	StallTime   time.Duration // how often to look for stale requests; default 100 ms
	// DropStale closes the connection of a waiting request that is stale. With
	// StaleLatency, a request is stale after it has waited longer than its session's
	// timeout. A request whose connection is closed is dropped in any case.
	DropStale, StaleLatency bool
	// OpWait is how long a request may wait. After that it is answered with ThrottledOp
	// and not executed; 0: for ever.
	OpWait time.Duration
}

func (r *RequestThrottle) on() bool { return r.MaxRequests > 0 || r.OpWait > 0 }

// throttle is an active RequestThrottle. Readers wait in its queue, each with one
// request, and get slots in order of arrival: however much a client sends, it has one
// place in the queue. The rest of its input stays in its socket.
type throttle struct {
	cfg  RequestThrottle
	poke chan struct{} // capacity 1: a slot is free and a reader waits

	mu      sync.Mutex
	taken   int
	waiting []*conn
}

func newThrottle(cfg RequestThrottle) *throttle {
	if !cfg.on() {
		return nil
	}
	or(&cfg.StallTime, 100*time.Millisecond)
	return &throttle{cfg: cfg, poke: make(chan struct{}, 1)}
}

// enter takes a slot for c's request, or a place in the queue.
func (t *throttle) enter(c *conn) (now bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 && t.taken < t.cfg.MaxRequests {
		t.taken++
		return true
	}
	c.replies.barred.Store(true)
	t.waiting = append(t.waiting, c)
	return false
}

// release returns a slot. The lock of a reply queue may be held.
func (t *throttle) release() {
	t.mu.Lock()
	t.taken--
	somebody := len(t.waiting) > 0
	t.mu.Unlock()
	if somebody {
		select {
		case t.poke <- struct{}{}:
		default:
		}
	}
}

// next gives a free slot to the first reader in the queue; nil if there is no slot or
// no reader.
func (t *throttle) next() *conn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 || t.taken >= t.cfg.MaxRequests {
		return nil
	}
	c := t.waiting[0]
	t.waiting = t.waiting[1:]
	t.taken++
	return c
}

// leave removes c from the queue. It returns false if c isn't queued any more, because
// it got a slot.
func (t *throttle) leave(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range t.waiting {
		if w == c {
			t.waiting = append(t.waiting[:i:i], t.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// passThrottle admits waiting readers, one for each slot that becomes free.
func (s *Server) passThrottle() {
	t := s.throttle
	ticker := time.NewTicker(t.cfg.StallTime)
	defer ticker.Stop()
	for {
		select {
		case <-t.poke:
		case <-ticker.C:
			s.dropStale()
			continue
		case <-s.done:
			return
		}
		for c := t.next(); c != nil; c = t.next() {
			c.replies.unbar()
		}
	}
}

// dropStale closes the connections whose requests have waited longer than their
// sessions' timeouts.
func (s *Server) dropStale() {
	t := s.throttle
	if !t.cfg.DropStale || !t.cfg.StaleLatency {
		return
	}
	t.mu.Lock()
	all := append([]*conn(nil), t.waiting...)
	t.mu.Unlock()
	now := s.clock()
	for _, c := range all {
		c.replies.mu.Lock()
		// A waiting reader doesn't change these fields.
		stale := c.replies.barred.Load() && now-c.reader.started > int64(c.session.timeout)*stats.Millisecond
		c.replies.mu.Unlock()
		if stale {
			c.complain("closing a client whose request has waited for longer than its session's timeout")
			c.kill()
		}
	}
}

// admit waits until the request may be processed. ok is false if the connection was
// closed meanwhile; refuse is the answer if the request must not be executed.
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
				if !t.leave(c) {
					t.release()
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
