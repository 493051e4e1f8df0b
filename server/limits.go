package server

import "time"

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
		s.complaints.catchUp(now)
		s.lookForEnsemble(now)
		s.enterReadOnly()
		if late {
			s.credit(now)
			continue
		}
		s.clients.each(func(c *conn) { s.check(c, now) })
	}
}

// credit resets the silence of all clients. It is called after the whole process stood
// still: what the clients sent in the meantime is still unread in the sockets.
func (s *Server) credit(now int64) {
	s.clients.each(func(c *conn) { c.session.last.Store(now) })
}

// check closes c if it has been silent for its session's timeout, if it has waited too
// long for a session, or if the server may no longer answer it.
func (s *Server) check(c *conn, now int64) {
	c.replies.mu.Lock()
	timeout, sid := time.Duration(c.session.timeout)*time.Millisecond, c.session.id
	waits, gated := c.replies.head != nil || c.replies.barred.Load(), s.contact.gated && !c.session.local && c.session.id != 0
	c.replies.mu.Unlock()
	limit := timeout
	switch {
	case sid == 0 && waits:
		limit /= 3 // leaves the client time for another server
		if c.s.contact.gated && c.s.contact.inTouch.Load() <= c.session.last.Load() && !c.s.node.Electing() {
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
		s.stats.expired.Add(1)
		c.kill()
	}
}
