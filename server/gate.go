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

// gate reports whether a reply may leave: not once the leader may have expired
// the session, for then the holder of a lock could go on here while the lock is
// given to another elsewhere. docs/architecture.md has the rule.
func (c *conn) gate() error {
	if !c.s.gated || c.local || c.sid == 0 || c.alive() {
		return nil
	}
	return errOutOfTouch
}

// alive reports whether the session of c cannot have been expired yet.
func (c *conn) alive() bool {
	timeout := time.Duration(c.timeout) * time.Millisecond
	return c.s.knows(timeout) && c.s.clock()-c.heardOf(c.s.inTouch.Load()) < int64(timeout-timeout/10)
}

// heardOf is a clock at which the session was heard of and which the ensemble
// knows: no leader ends the session within its timeout from then. touch is the
// newest contact with the ensemble.
func (c *conn) heardOf(touch int64) int64 {
	if reported := c.reported.Load(); reported <= touch {
		return reported
	}
	return c.known.Load()
}

// report notes that the ensemble will be told that the session is alive, as of
// now.
func (c *conn) report(now, touch int64) {
	c.known.Store(c.heardOf(touch))
	c.reported.Store(now)
}

// knows reports whether the ensemble has heard of this server's sessions lately
// enough for one of a timeout: the last third is left for its client to move.
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
