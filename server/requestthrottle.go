package server

import (
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// RequestThrottle limits the requests that are being processed at one time. The
// zero value has no limit.
type RequestThrottle struct {
	MaxRequests int           // in process; 0: no limit
	StallTime   time.Duration // how often stale ones are looked for; default 100 ms
	// DropStale closes the connection of a waiting request that is stale: with
	// StaleLatency when it has waited for longer than its session's timeout. One
	// whose connection is closed is dropped in any case.
	DropStale, StaleLatency bool
	// OpWait is how long a request may wait before it is answered with
	// ThrottledOp instead of being done; 0: for ever.
	OpWait time.Duration
}

func (r *RequestThrottle) on() bool { return r.MaxRequests > 0 || r.OpWait > 0 }

// throttle is a RequestThrottle at work. Readers wait in it, each with one
// request, and are let in in the order they came: however much a client sends, it
// has one place in the line. What else it sent waits in its socket.
type throttle struct {
	cfg  RequestThrottle
	poke chan struct{} // capacity 1: a slot is free and somebody waits

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

// enter takes a slot for c's request, or a place in the line.
func (t *throttle) enter(c *conn) (now bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) == 0 && t.taken < t.cfg.MaxRequests {
		t.taken++
		return true
	}
	c.barred.Store(true)
	t.waiting = append(t.waiting, c)
	return false
}

// release gives a slot back. c.mu may be held.
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

// next gives a free slot to the first in the line, nil if there is none of
// either.
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

// leave takes c out of the line. It reports false if c is not in it any more: it
// has been given a slot.
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

// passThrottle lets those in who wait, one for each slot that becomes free.
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
			c.mu.Lock()
			c.barred.Store(false)
			c.wakeReader()
			c.mu.Unlock()
		}
	}
}

// dropStale closes those who have waited for so long that their clients have
// given up.
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
		c.mu.Lock()
		// A reader in the line does not change what it waits with.
		stale := c.barred.Load() && now-c.started > int64(c.timeout)*millisecond
		c.mu.Unlock()
		if stale {
			c.complain("closing a client whose request has waited for longer than its session's timeout")
			c.kill()
		}
	}
}

// admit waits until the request may be processed. ok is false when the connection
// has been closed meanwhile; refuse is the answer if the request is not to be
// done.
func (c *conn) admit(w *work, op proto.Op) (refuse proto.Code, ok bool) {
	t := c.s.throttle
	if op == proto.OpPing {
		return proto.Ok, true // who waits is not to lose its session for it
	}
	if t.cfg.MaxRequests > 0 {
		if !t.enter(c) {
			c.settle(w)
			c.flush()
			c.s.stats.throttleWaits.Add(1)
			if !c.await(func() bool { return !c.barred.Load() }) {
				if !t.leave(c) {
					t.release()
				}
				c.s.stats.staleDropped.Add(1)
				return proto.Ok, false
			}
		}
		c.charge.slot = true
	}
	waited := c.s.clock() - c.started
	c.s.stats.throttleQueue.Observe(1, waited)
	if t.cfg.OpWait > 0 && waited > int64(t.cfg.OpWait) && op != proto.OpCloseSession {
		c.s.stats.throttledOps.Add(1)
		return proto.ErrThrottledOp, true
	}
	return proto.Ok, true
}
