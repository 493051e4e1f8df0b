package server

import (
	"errors"
	"math"
	"time"
)

// errOutOfTouch closes the clients of a server that cannot know any more
// whether their sessions live, or whose state is too old to be read.
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

// knows reports whether this server may answer the client of a session with that
// timeout: the ensemble has heard of its sessions so lately, and the state has all
// that was acknowledged so lately, that the last third of the timeout is left for
// the client to move, and no read is older than the rest.
func (s *Server) knows(timeout time.Duration) bool {
	return s.freshWithin(min(timeout*2/3, time.Duration(s.cfg.SyncLimit)*s.cfg.TickTime))
}

// welcomes reports whether a client with that timeout may begin here: a server
// that would have to close it again soon sends it elsewhere at once.
func (s *Server) welcomes(timeout time.Duration) bool {
	return !s.gated || s.freshWithin(min(timeout*2/3, time.Duration(s.cfg.SyncLimit)*s.cfg.TickTime)*3/4)
}

// freshWithin reports whether the state is not older than limit.
func (s *Server) freshWithin(limit time.Duration) bool {
	now := s.clock()
	if now-s.freshAt.Load() < int64(limit) {
		return true // asking costs more than a reply
	}
	s.lookAt()
	return now-s.freshAt.Load() < int64(limit)
}

// lookAt asks for the newest proofs that the ensemble knows this server, which it
// returns, and that this server has what the ensemble knows.
func (s *Server) lookAt() int64 {
	fresh := max(int64(s.fresh().Sub(s.epoch)), never)
	at := max(int64(s.confirmed().Sub(s.epoch)), never)
	s.freshAt.Store(fresh)
	s.inTouch.Store(at)
	return at
}

// lookForEnsemble notices when the state of this server is syncLimit ticks old,
// for it lags behind or is out of touch: then it serves nobody new.
func (s *Server) lookForEnsemble(now int64) {
	if !s.gated {
		return
	}
	s.lookAt()
	touch := now-s.freshAt.Load() < int64(s.cfg.SyncLimit)*int64(s.cfg.TickTime)
	s.changeMode(func(m *modes) { m.touch = touch })
}
