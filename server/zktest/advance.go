package zktest

import "time"

// Advance moves the server's clock and does at once what would have happened
// meanwhile: sessions that nobody is connected with, or whose connection hangs,
// expire when their timeout is over, and so do znodes with a time to live and
// empty containers. Clients that are connected count as having sent their
// pings, unless WithoutPings was given.
//
// As on every ZooKeeper a session ends between its timeout and one tick more
// after its client was last heard of. A client that has closed its connection
// itself counts as connected until the server has noticed. On a member of a
// cluster it is Cluster.Advance.
func (s *Server) Advance(d time.Duration) {
	s.t.Helper()
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
	// Every session that a client knows of has its deadline, and whoever was
	// heard was heard before the clock moved.
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
