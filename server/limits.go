package server

import (
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/poller"
)

// tend periodically closes connections that have been silent for too long or that the
// server may no longer answer, and enforces the bounds over all connections.
func (s *Server) tend() {
	every := min(s.cfg.TickTime/2, s.cfg.MinSessionTimeout/6)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := s.clock()
	for {
		select {
		case <-s.done:
			return
		case <-s.relieve:
			s.relieved()
			continue
		case <-ticker.C:
		}
		now := s.clock()
		late := now-last > int64(2*every)
		last = now
		s.complaints.CatchUp(now)
		s.contact.check(now)
		s.modes.enterReadOnly()
		if late {
			s.clients.credit(now)
			continue
		}
		s.clients.each(func(c *conn) { c.check(now) })
	}
}

// credit resets the silence of all clients. It is called after the whole process stood
// still: what the clients sent in the meantime is still unread in the sockets.
func (t *clientTable) credit(now int64) {
	t.each(func(c *conn) { c.session.last.Store(now) })
}

// check closes c if it has been silent for its session's timeout, if it has waited too
// long for a session, or if the server may no longer answer it.
func (c *conn) check(now int64) {
	s := c.s
	c.replies.mu.Lock()
	timeout, sid := time.Duration(c.session.timeout)*time.Millisecond, c.session.id
	waits, gated := c.replies.head != nil || c.replies.barred.Load(), s.contact.gated && !c.session.local && c.session.id != 0
	c.replies.mu.Unlock()
	limit := timeout
	switch {
	case sid == 0 && waits:
		limit /= 3 // leaves the client time for another server
		if s.contact.gated && s.contact.inTouch.Load() <= c.session.last.Load() && !s.node.Electing() {
			limit = min(limit, confirmHold) // there may be no leader that can create the session
		}
	case sid == 0:
		limit = s.cfg.Limits.SessionlessTimeout
	case waits:
		limit = 0 // the client waits for us
	}
	if sid != 0 && !c.lookAtSlow(now, int64(timeout)) {
		return
	}
	if limit > 0 && now-c.session.last.Load() > int64(limit) || gated && !c.session.alive() {
		s.log.Debug("closing a silent client", "client", c.nc.RemoteAddr(), "session", sessionID(sid))
		s.stats.Expired.Add(1)
		c.kill()
	}
}

// complain logs that the server refuses something to the client of c.
func (c *conn) complain(msg string, args ...any) {
	c.s.complaints.Warn(c.s.clock(), msg, append([]any{"client", c.nc.RemoteAddr(), "session", sessionID(c.session.id)}, args...)...)
}

// lookAtSlow checks a client that is being written to, or that has been silent for half
// of limit, for signs of life. It returns false if it closed the client.
func (c *conn) lookAtSlow(now, limit int64) bool {
	q := &c.replies
	q.mu.Lock()
	writing, written, waiting := q.writing, q.sentBytes, q.pushing
	if q.out != nil {
		waiting += len(q.out.B)
	}
	q.mu.Unlock()
	if !writing && now-c.session.last.Load() < limit/2 {
		q.slow = limits.Progress{}
		return true
	}
	unsent, inbox := poller.Queued(c.kernel)
	alive, stalled := q.slow.Look(now, written-int64(unsent), inbox, waiting+unsent)
	if stalled {
		c.s.stats.Dropped.Add(1)
		c.s.complaints.Warn(c.s.clock(), "closing a client that hardly takes what waits for it", "client", c.nc.RemoteAddr(), "bytes", waiting+unsent)
		c.kill()
		return false
	}
	if alive {
		c.session.last.Store(now)
		c.session.heard.Store(true)
	}
	return true
}
