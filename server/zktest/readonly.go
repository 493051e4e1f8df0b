package zktest

// ReadOnly puts the server into read-only mode, as if it had lost its ensemble, until back
// is called. The server disconnects its clients. Clients that ask for read-only mode get a
// session that can only read; other clients get none. An ensemble session stays alive only
// while another server hears from its client, so on a standalone server it expires after
// its timeout. Writes by this package still succeed, as if another server had made them.
func (s *Server) ReadOnly() (back func()) {
	s.t.Helper()
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
