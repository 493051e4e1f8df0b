package zktest

// Kill ends the server as kill -9 does: its clients, and the others of its
// cluster, hear nothing more, and its port refuses clients. A server alone still
// executes what it has read.
func (s *Server) Kill() {
	s.t.Helper()
	s.mu.Lock()
	was := s.up
	s.up = false
	s.mu.Unlock()
	if !was {
		s.fatalf("Kill: it does not run")
	}
	s.logs.say("%s is killed", s.name)
	if s.cluster != nil {
		s.cluster.net.Kill(host(s.id))
	}
	s.standStill(false) // who is dead need not stand still
	for _, conn := range s.gate.ofSession(0) {
		_ = conn.Close()
	}
	srv := s.Server()
	closed := make(chan error, 1)
	s.closing = closed
	go func() { // it may wait for others that it cannot reach any more
		closed <- srv.Close()
		close(closed)
	}()
}

// Restart starts the server again that was killed, at the same address, and
// waits until it serves. With OnDisk it has its data and its sessions. Otherwise
// it is empty, or, in a cluster, gets them from the others, as a server does
// whose disk was replaced; that takes a majority of the others to let it in.
func (s *Server) Restart() {
	s.t.Helper()
	s.Start()
	if s.cluster != nil {
		s.cluster.WaitServing()
	} else if !s.awaitReady() {
		s.fatalf("Restart: it does not serve within %v", patience)
	}
}

// Start is Restart without the wait, for when the server cannot serve yet.
func (s *Server) Start() {
	s.t.Helper()
	if s.closing == nil {
		s.fatalf("Restart: it was not killed")
	}
	s.awaitKilled()
	s.logs.say("%s is started again", s.name)
	if err := s.start(); err != nil {
		s.fatalf("Restart: %v", err)
	}
	if s.cluster != nil {
		s.cluster.links()
	}
}

// awaitKilled waits until a killed server has ended, if it was killed. How it
// ended is told, but is no failure: it was cut off from the others.
func (s *Server) awaitKilled() {
	if s.closing == nil {
		return
	}
	if err := <-s.closing; err != nil {
		s.logs.say("%s ended with: %v", s.name, err)
	}
	s.closing = nil
}
