package zktest

import "time"

// Pause suspends the server like SIGSTOP. The server sends nothing to its clients and to the
// other members of its cluster, and receives nothing; its connections stay open; its clock
// stops, so nothing expires; and it writes nothing to disk. Incoming data waits. On Resume
// its clock jumps to the current time, like the clock of a resumed process.
//
// Unlike a stopped process, a paused server notices that it hears nothing, because Raft's
// own timers keep running. A leader that is paused for a second or two knows at Resume that
// it has lost leadership; a real one finds out within milliseconds.
func (s *Server) Pause() {
	s.t.Helper()
	s.inProcess(needsFaults)
	s.logs.printf("%s is paused", s.name)
	s.standStill(true)
	if s.cluster != nil {
		s.cluster.links()
	}
}

// Resume ends Pause.
func (s *Server) Resume() {
	s.t.Helper()
	s.inProcess(needsFaults)
	s.logs.printf("%s is resumed", s.name)
	s.standStill(false)
	if s.cluster != nil {
		s.cluster.links()
	}
}

// standStill stops the clock, the disk and the connections, or resumes them.
func (s *Server) standStill(still bool) {
	if s.cluster != nil {
		s.cluster.setPaused(s.id, still)
	}
	s.disk.stop(still)
	s.gate.pause(still)
	if !still {
		s.stopped.Store(nil)
	} else if s.stopped.Load() == nil {
		now := s.clock.now()
		s.stopped.Store(&now)
	}
}

// now returns the time of the server's clock.
func (s *Server) now() time.Time {
	if at := s.stopped.Load(); at != nil {
		return *at
	}
	return s.clock.now()
}

// ReadOnly puts the server into read-only mode, as if it had lost its ensemble, until back
// is called. The server disconnects its clients. Clients that ask for read-only mode get a
// session that can only read; other clients get none. An ensemble session stays alive only
// while another server hears from its client, so on a standalone server it expires after
// its timeout. Writes by this package still succeed, as if another server had made them.
func (s *Server) ReadOnly() (back func()) {
	s.t.Helper()
	s.inProcess(needsFaults)
	if !s.isUp() {
		s.fatalf("ReadOnly: it does not run")
	}
	srv := s.Server()
	s.gate.log("read-only mode")
	srv.ForceReadOnly(true)
	return func() {
		s.gate.log("read-only mode is over")
		srv.ForceReadOnly(false)
	}
}
