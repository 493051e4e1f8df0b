package zktest

import "time"

// Advance moves the server's clock by d and immediately does the work of that time. It
// expires sessions without a working connection after their timeout, deletes empty
// containers, and deletes znodes after their time to live. Connected clients count as having
// sent their pings unless WithoutPings was given.
//
// As with any ZooKeeper server, a session expires between its timeout and one tick later,
// counted from its client's last message. If a client has closed its connection itself, it
// counts as connected until the server notices. On a member of a cluster, Advance is
// Cluster.Advance.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
	s.inProcess(needsClock)
	if s.cluster != nil {
		s.cluster.Advance(d)
		return
	}
	s.gate.log("the clock moves by %v", d)
	if err := s.advance(d); err != nil {
		s.fatalf("Advance: %v", err)
	}
}

func (s *Server) advance(d time.Duration) error {
	srv := s.Server()
	// After the barrier, every session that a client knows of has its deadline, and we have
	// recorded every message that arrived before the clock moved.
	if err := barrier(srv); err != nil {
		return err
	}
	srv.Node().Kick()
	if !s.opts.silent {
		alive := func() []int64 { return s.gate.sessions(false) }
		s.gate.alive.Store(&alive)
		defer s.gate.alive.Store(nil)
	}
	s.clock.advance(d)
	srv.Node().Kick()
	return barrier(srv)
}
