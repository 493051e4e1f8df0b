package server

import (
	"errors"
	"math"
	"time"
)

// errOutOfTouch closes the clients of a server that cannot know any more
// whether their sessions live.
var errOutOfTouch = errors.New("server: out of touch with the ensemble")

// never is a clock before every other, with room for differences.
const never = math.MinInt64 / 2

// gate reports whether a reply may leave. A server that the leader has not
// acknowledged for two thirds of a session's timeout falls silent: the last
// third is left for the client to move before anybody can expire its session.
// Otherwise the holder of a lock could go on here while the lock is given to
// another elsewhere.
func (c *conn) gate() error {
	if !c.s.gated || c.local || c.sid == 0 || c.s.knows(time.Duration(c.timeout)*time.Millisecond) {
		return nil
	}
	return errOutOfTouch
}

// knows reports whether a session of a timeout cannot have been expired yet.
func (s *Server) knows(timeout time.Duration) bool {
	limit := int64(min(timeout*2/3, time.Duration(s.cfg.SyncLimit)*s.cfg.TickTime))
	now := s.clock()
	// Asking costs more than a reply, so it is done only when what was known
	// is not enough.
	return now-s.inTouch.Load() < limit || now-s.lookAt() < limit
}

// lookAt asks for the newest proof that the ensemble knows this server.
func (s *Server) lookAt() int64 {
	at := max(int64(s.confirmed().Sub(s.epoch)), never)
	s.inTouch.Store(at)
	return at
}

// lookForEnsemble notices when the ensemble has not confirmed this server for
// syncLimit ticks: then it serves nobody new.
func (s *Server) lookForEnsemble(now int64) {
	if !s.gated {
		return
	}
	touch := now-s.lookAt() < int64(s.cfg.SyncLimit)*int64(s.cfg.TickTime)
	s.changeMode(func(m *modes) { m.touch = touch })
}
