package server

import "time"

// admit registers a new connection, unless there are too many.
func (s *Server) admit(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return false
	case s.cfg.MaxCnxns > 0 && len(s.conns) >= s.cfg.MaxCnxns:
		s.stats.rejected.Add(1)
		c.complain("closing a client: there are maxCnxns connections", "maxCnxns", s.cfg.MaxCnxns)
		return false
	case s.cfg.MaxClientCnxns > 0 && c.host != "" && s.perHost[c.host] >= s.cfg.MaxClientCnxns:
		s.stats.rejected.Add(1)
		c.complain("closing a client: there are maxClientCnxns connections from its address", "maxClientCnxns", s.cfg.MaxClientCnxns)
		return false
	}
	s.conns[c] = struct{}{}
	s.perHost[c.host]++
	s.wg.Add(1)
	return true
}

// stopping reports whether the server is closing.
func (s *Server) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// forget undoes admit, and releases the session unless another connection has taken it
// over.
func (s *Server) forget(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.perHost[c.host]--; s.perHost[c.host] == 0 {
		delete(s.perHost, c.host)
	}
	if s.sessions[c.sid] == c {
		delete(s.sessions, c.sid)
		if !c.local {
			s.lost.add(c.sid, c.host)
		}
	}
}

// eachConn calls f for every connection. It doesn't hold the Server's mutex while f
// runs.
func (s *Server) eachConn(f func(*conn)) {
	s.mu.Lock()
	all := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		all = append(all, c)
	}
	s.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

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
		s.lookForEnsemble(now)
		s.enterReadOnly()
		if late {
			s.credit(now)
			continue
		}
		s.eachConn(func(c *conn) { s.check(c, now) })
	}
}

// credit resets the silence of all clients. It is called after the whole process stood
// still: what the clients sent in the meantime is still unread in the sockets.
func (s *Server) credit(now int64) {
	s.eachConn(func(c *conn) { c.last.Store(now) })
}

// check closes c if it has been silent for its session's timeout, if it has waited too
// long for a session, or if the server may no longer answer it.
func (s *Server) check(c *conn, now int64) {
	c.mu.Lock()
	timeout, sid := time.Duration(c.timeout)*time.Millisecond, c.sid
	waits, gated := c.head != nil || c.barred.Load(), s.gated && !c.local && c.sid != 0
	c.mu.Unlock()
	limit := timeout
	switch {
	case sid == 0 && waits:
		limit /= 3 // leaves the client time for another server
		if c.s.gated && c.s.inTouch.Load() <= c.last.Load() && !c.s.node.Electing() {
			limit = min(limit, confirmHold) // there may be no leader that can create the session
		}
	case sid == 0:
		limit = s.cfg.SessionlessTimeout
	case waits:
		limit = 0 // the client waits for us
	}
	if sid != 0 && !c.lookAtSlow(now, int64(timeout)) {
		return
	}
	if limit > 0 && now-c.last.Load() > int64(limit) || gated && !c.alive() {
		s.log.Debug("closing a silent client", "client", c.nc.RemoteAddr(), "session", sessionID(sid))
		s.stats.expired.Add(1)
		c.kill()
	}
}

// complain logs that the server refuses something to the client of c.
func (c *conn) complain(msg string, args ...any) {
	c.s.complaints.Warn(c.s.clock(), msg, append([]any{"client", c.nc.RemoteAddr(), "session", sessionID(c.sid)}, args...)...)
}
