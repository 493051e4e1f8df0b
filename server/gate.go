package server

import (
	"errors"
	"time"
)

// errOutOfTouch closes the clients of a server that cannot know any more
// whether their sessions live.
var errOutOfTouch = errors.New("server: out of touch with the ensemble")

// gate reports whether a reply may leave. A server that the leader has not
// acknowledged for two thirds of a session's timeout falls silent: the last
// third is left for the client to move before anybody can expire its session.
// Otherwise the holder of a lock could go on here while the lock is given to
// another elsewhere.
func (c *conn) gate() error {
	s := c.s
	if !s.gated || c.local || c.sid == 0 {
		return nil
	}
	limit := min(time.Duration(c.timeout)*time.Millisecond*2/3, time.Duration(s.cfg.SyncLimit)*s.cfg.TickTime)
	if time.Since(s.confirmed()) >= limit {
		return errOutOfTouch
	}
	return nil
}
