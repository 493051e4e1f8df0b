package zktest

import "time"

// Pause makes the server stand still, as SIGSTOP does: it says nothing to its
// clients and to the others of its cluster, and hears nothing; connections to it
// stay open; its clock stands still, so that nothing expires, and nothing is
// written to its disk. What comes meanwhile waits. At Resume its clock is
// suddenly right again, as that of a process is.
//
// What a process that is stopped cannot do and this one does is to notice that
// it hears nothing: Raft's own timers run on. A leader that is paused for a
// second or two knows at Resume that it does not lead any more; a real one
// finds out within milliseconds.
func (s *Server) Pause() {
	s.t.Helper()
	s.logs.say("%s stands still", s.name)
	s.standStill(true)
	if s.cluster != nil {
		s.cluster.links()
	}
}

// Resume ends Pause.
func (s *Server) Resume() {
	s.t.Helper()
	s.logs.say("%s goes on", s.name)
	s.standStill(false)
	if s.cluster != nil {
		s.cluster.links()
	}
}

// standStill stops clock, disk and connections, or lets them go on.
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

// now is the server's clock.
func (s *Server) now() time.Time {
	if at := s.stopped.Load(); at != nil {
		return *at
	}
	return s.clock.now()
}
