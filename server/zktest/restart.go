package zktest

// Kill ends the server like kill -9: its clients and the other members of its cluster get no
// more data from it, and its port refuses connections. A standalone server still executes
// the requests that it has read.
func (s *Server) Kill() {
	s.t.Helper()
	s.inProcess(needsFaults)
	s.mu.Lock()
	was := s.up
	s.up = false
	s.mu.Unlock()
	if !was {
		s.fatalf("Kill: it does not run")
	}
	s.logs.printf("%s is killed", s.name)
	if s.cluster != nil {
		s.cluster.net.Kill(host(s.id))
	}
	s.standStill(false) // a killed server needn't stay paused
	for _, conn := range s.gate.ofSession(0) {
		_ = conn.Close()
	}
	srv := s.Server()
	closed := make(chan error, 1)
	s.closing = closed
	go func() { // this may wait for servers that it can't reach any more
		closed <- srv.Close()
		close(closed)
	}()
}

// Restart starts a killed server again at the same address, and waits until it serves. With
// OnDisk it has its data and sessions. Otherwise, a standalone server is empty, and a member
// of a cluster gets its data from the other members, like a server with a replaced disk; in
// this case a majority of the other members must admit it.
func (s *Server) Restart() {
	s.t.Helper()
	s.inProcess(needsFaults)
	s.Start()
	if s.cluster != nil {
		s.cluster.WaitServing()
	} else if !s.awaitReady() {
		s.fatalf("Restart: it does not serve within %v", patience)
	}
}

// Start is Restart without the wait. Use it for a server that can't serve yet.
func (s *Server) Start() {
	s.t.Helper()
	s.inProcess(needsFaults)
	if s.closing == nil {
		s.fatalf("Restart: it was not killed")
	}
	s.awaitKilled()
	s.logs.printf("%s is started again", s.name)
	if err := s.start(); err != nil {
		s.fatalf("Restart: %v", err)
	}
	if s.cluster != nil {
		s.cluster.links()
	}
}

// awaitKilled waits until a killed server has ended. If closing fails, we log the error
// instead of failing the test, because the server was cut off from its ensemble.
func (s *Server) awaitKilled() {
	if s.closing == nil {
		return
	}
	if err := <-s.closing; err != nil {
		s.logs.printf("%s ended with: %v", s.name, err)
	}
	s.closing = nil
}
