package zktest

// ReadOnly puts the server into read-only mode, as if it had lost its ensemble,
// until back is called: its clients are sent away, those that ask for read-only
// mode get a session that is good for reading, others none. Sessions of the
// ensemble live on as long as another server hears of their clients: on a server
// alone they end with their timeout. What this package writes is still written,
// as by the other servers.
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
