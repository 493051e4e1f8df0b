package bench

import (
	"time"

	"github.com/zkgo/zkgo/proto"
)

// writeAt is how many bytes of requests are written at the latest.
const writeAt = 32 << 10

// window keeps up to n requests in flight until next adds none any
// more and all are answered. Requests are written when no reply waits to be read.
func (c *conn) window(n int, next func() bool, answered func(reply) error) error {
	inFlight, more := 0, true
	for {
		for more && inFlight < n && len(c.out) < writeAt {
			if more = next(); more {
				inFlight++
			}
		}
		if len(c.out) > 0 && (c.r.Buffered() < proto.LengthSize || len(c.out) >= writeAt) {
			if err := c.flush(); err != nil {
				return err
			}
		}
		if inFlight == 0 {
			return nil
		}
		got, err := c.next()
		if err != nil {
			return err
		}
		if got.Xid < 0 {
			continue // an event, or a ping's answer
		}
		inFlight--
		if err := answered(got); err != nil {
			return err
		}
	}
}

// pump asks on connection i, whose requests next adds one at a time, until the run
// is over. A lost connection is replaced by one to the next server.
func (r *run) pump(i int, next func(c *conn)) error {
	server := i
	for {
		lost, err := r.pumpOne(i, r.conns[i], next)
		if err == nil || r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		r.failure("ConnectionLoss", int64(lost))
		r.conns[i].close()
		for {
			if r.over.Load() || !r.sleep(100*time.Millisecond, nil) {
				return r.ctx.Err()
			}
			server++
			if c, err := dial(r.ctx, &r.cfg, r.cfg.Servers[server%len(r.cfg.Servers)]); err == nil {
				r.conns[i] = c
				break
			}
			r.failure("no connection", 1)
		}
	}
}

// pumpOne asks on one connection. When that is lost it returns how many requests
// had no answer.
func (r *run) pumpOne(i int, c *conn, next func(c *conn)) (lost int, err error) {
	return c.timed(r.cfg.Window, func() bool {
		if r.over.Load() {
			return false
		}
		next(c)
		return true
	}, func(code proto.Code, took time.Duration) error {
		if code != proto.Ok {
			r.failure(code.String(), 1)
			return nil
		}
		r.done(i, took)
		return nil
	})
}

// timed is window, and tells answered how long each request took. A request that is
// added when a reply has come counts as sent then. It returns how many had no answer.
func (c *conn) timed(n int, next func() bool, answered func(code proto.Code, took time.Duration) error) (inFlight int, err error) {
	sent, first := make([]time.Time, n), 0
	now := time.Now()
	err = c.window(n, func() bool {
		if !next() {
			return false
		}
		sent[(first+inFlight)%n] = now
		inFlight++
		return true
	}, func(got reply) error {
		now = time.Now()
		took := now.Sub(sent[first])
		first, inFlight = (first+1)%n, inFlight-1
		return answered(got.Err, took)
	})
	return inFlight, err
}
