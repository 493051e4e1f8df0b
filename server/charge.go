package server

import (
	"errors"
	"math"
)

// charge is what a request takes of the server's limits until it is answered or
// its connection ends. It goes with the request from the reader into the queue.
type charge struct {
	large int  // its bytes, if it is a large one
	slot  bool // of the request throttle
}

// discharge gives it back.
func (s *Server) discharge(k charge) {
	if k.large != 0 {
		s.largeBytes.Add(-int64(k.large))
	}
	if k.slot {
		s.throttle.release()
	}
}

// errLarge reports a large request for which there is no room beside the others.
var errLarge = errors.New("server: too many bytes in large requests")

// largeAbove is the length above which a request is a large one.
func (c *Config) largeAbove() int {
	if c.LargeRequestAbove <= 0 {
		return math.MaxInt
	}
	return c.LargeRequestAbove
}

// admitLarge decides about a request of n bytes, once when its length is known
// and again when it has arrived, and then counts it. A client whose request does
// not fit is closed: what it sends behind is not worth the memory either.
func (c *conn) admitLarge(n int, whole bool) error {
	s := c.s
	if !whole {
		if c.announced {
			return nil
		}
		c.announced = true
		if s.largeBytes.Load()+int64(n) > int64(s.cfg.LargeRequestMax) {
			return c.refuseLarge(n)
		}
		return nil
	}
	c.announced = false
	if s.largeBytes.Add(int64(n)) > int64(s.cfg.LargeRequestMax) {
		s.largeBytes.Add(-int64(n))
		return c.refuseLarge(n)
	}
	c.charge.large = n
	return nil
}

func (c *conn) refuseLarge(n int) error {
	c.s.stats.largeRejected.Add(1)
	c.complain("closing a client: largeRequestMaxBytes are taken by other large requests", "bytes", n, "largeRequestMaxBytes", c.s.cfg.LargeRequestMax)
	return errLarge
}
