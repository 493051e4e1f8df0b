package bench

import (
	"time"

	"github.com/zkgo/zkgo/proto"
)

// writeAt is the number of pending bytes at which window writes the requests.
const writeAt = 32 << 10

// window keeps up to n requests in flight until next adds no more and all have
// replies. It writes pending requests when no reply is waiting to be read.
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
			continue // an event, or the reply to a ping
		}
		inFlight--
		if err := answered(got); err != nil {
			return err
		}
	}
}

// pump sends requests on connection i until the run is over. next appends one
// request. If pump loses the connection, it connects to the next server.
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

// pumpOne sends requests on one connection. If the connection is lost, pumpOne
// returns how many requests got no reply.
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

// timed is window, and passes the latency of each request to answered. If we add a request
// because a reply has arrived, it counts as sent at that time. timed returns how many
// requests got no reply.
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
