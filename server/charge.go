package server

import (
	"errors"
	"math"
)

// charge is a request's share of the server's limits until it is answered or its
// connection ends. It moves with the request from the reader into the queue.
type charge struct {
	large int  // the request's bytes, if it is large
	slot  bool // holds a slot of the request throttle
}

// discharge returns k to the limits.
func (s *Server) discharge(k charge) {
	if k.large != 0 {
		s.largeBytes.Add(-int64(k.large))
	}
	if k.slot {
		s.throttle.release()
	}
}

// errLarge reports a large request that doesn't fit next to the others in flight.
var errLarge = errors.New("server: too many bytes in large requests")

// largeAbove returns the length above which a request counts as large.
func (c *Config) largeAbove() int {
	if c.Limits.LargeRequestAbove <= 0 {
		return math.MaxInt
	}
	return c.Limits.LargeRequestAbove
}

// admitLarge decides about a request of n bytes: once when its length is known, and
// again when it has arrived; only then it counts. The server closes a client whose
// request doesn't fit, because the rest of its input isn't worth the memory either.
func (r *reader) admitLarge(n int, whole bool) error {
	s := r.c.s
	if !whole {
		if r.announced {
			return nil
		}
		r.announced = true
		if s.largeBytes.Load()+int64(n) > int64(s.cfg.Limits.LargeRequestMax) {
			return r.refuseLarge(n)
		}
		return nil
	}
	r.announced = false
	if s.largeBytes.Add(int64(n)) > int64(s.cfg.Limits.LargeRequestMax) {
		s.largeBytes.Add(-int64(n))
		return r.refuseLarge(n)
	}
	r.charge.large = n
	return nil
}

func (r *reader) refuseLarge(n int) error {
	c := r.c
	c.s.stats.LargeRejected.Add(1)
	c.complain("closing a client: largeRequestMaxBytes are taken by other large requests", "bytes", n, "largeRequestMaxBytes", c.s.cfg.Limits.LargeRequestMax)
	return errLarge
}
