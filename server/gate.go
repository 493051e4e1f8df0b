package server

import (
	"errors"
	"math"
	"time"
)

// errOutOfTouch closes the clients of a server that can no longer know whether their
// sessions are alive, or whose state is too old to be read.
var errOutOfTouch = errors.New("server: out of touch with the ensemble")

// never is a clock before any other, with room for differences.
const never = math.MinInt64 / 2

// gate reports whether a reply may leave. It may not once the leader may have expired
// the session: the client could then rely on a lock that another client already holds.
// session/liveness.go has the rule.
func (c *conn) gate() error {
	if !c.s.gated || c.local || c.sid == 0 || c.alive() {
		return nil
	}
	return errOutOfTouch
}

// alive reports whether the session of c can't have expired yet.
func (c *conn) alive() bool {
	timeout := time.Duration(c.timeout) * time.Millisecond
	return c.s.freshWithin(c.s.bounds.Reply(timeout)) && c.signs.Alive(timeout, c.s.clock(), c.s.inTouch.Load())
}

// welcomes reports whether a client with that timeout may begin a session here.
func (s *Server) welcomes(timeout time.Duration) bool {
	return !s.gated || s.freshWithin(s.bounds.Welcome(timeout))
}

// freshWithin reports whether the state is no older than limit.
func (s *Server) freshWithin(limit time.Duration) bool {
	now := s.clock()
	if now-s.freshAt.Load() < int64(limit) {
		return true // asking costs more than a reply
	}
	s.lookAt()
	return now-s.freshAt.Load() < int64(limit)
}

// lookAt updates inTouch, the newest proof that the ensemble knows this server, and
// freshAt, the newest proof that this server has what the ensemble knows. It returns
// the former.
func (s *Server) lookAt() int64 {
	fresh := max(int64(s.fresh().Sub(s.epoch)), never)
	at := max(int64(s.confirmed().Sub(s.epoch)), never)
	s.freshAt.Store(fresh)
	s.inTouch.Store(at)
	return at
}

// lookForEnsemble stops the server from serving when its state is syncLimit ticks old,
// because it lags behind or has lost contact.
func (s *Server) lookForEnsemble(now int64) {
	if !s.gated {
		return
	}
	s.lookAt()
	touch := now-s.freshAt.Load() < int64(s.bounds.Sync)
	s.changeMode(func(m *modes) { m.touch = touch })
}
