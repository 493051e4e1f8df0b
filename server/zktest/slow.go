package zktest

import "time"

// slowness describes how slow a connection is.
type slowness struct {
	delay time.Duration
	rate  int // bytes a second; 0: no limit
}

// delayOf returns the delay of n bytes.
func (l slowness) delayOf(n int) time.Duration {
	d := l.delay
	if l.rate > 0 {
		d += time.Duration(float64(n) / float64(l.rate) * float64(time.Second))
	}
	return d
}

// SlowConnection delays all data between the server and a client, in both directions, until
// restore is called. Data arrives after the delay plus the transfer time at the given bytes
// per second; 0 means no limit. Data sent together arrives together. Advance shortens the
// wait.
func (s *Server) SlowConnection(session int64, delay time.Duration, bytesPerSecond int) (restore func()) {
	s.t.Helper()
	s.inProcess(needsFaults)
	list := s.gate.ofSession(session)
	if session == 0 || len(list) == 0 {
		s.fatalf("SlowConnection: session 0x%x is not connected here", session)
	}
	s.gate.log("the connection of session 0x%x is slow: %v, %d bytes a second", session, delay, bytesPerSecond)
	for _, c := range list {
		c.setSlow(slowness{delay, bytesPerSecond})
	}
	return func() {
		s.gate.log("the connection of session 0x%x has full speed again", session)
		for _, c := range list {
			c.setSlow(slowness{})
		}
	}
}

// SlowConnections is SlowConnection for all connections, including new ones.
func (s *Server) SlowConnections(delay time.Duration, bytesPerSecond int) (restore func()) {
	s.t.Helper()
	s.inProcess(needsFaults)
	s.gate.log("all connections are slow: %v, %d bytes a second", delay, bytesPerSecond)
	s.gate.setSlow(slowness{delay, bytesPerSecond})
	return func() {
		s.gate.log("all connections have full speed again")
		s.gate.setSlow(slowness{})
	}
}

func (g *gate) setSlow(to slowness) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slow = to
	for _, c := range g.conns {
		c.setSlow(to)
	}
}

func (c *clientConn) setSlow(to slowness) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.slow = to
}

func (c *clientConn) slowness() slowness {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.slow
}

// dawdle waits for the delay of n bytes. It returns false if the connection is closed in the
// meantime.
func (c *clientConn) dawdle(n int) bool {
	d := c.slowness().delayOf(n)
	return d == 0 || c.gate.clock.sleep(d, c.done)
}

// link is a directed link between two servers.
type link struct{ from, to int }

// SlowLink delays all messages between two servers, in both directions, until restore
// is called.
func (c *Cluster) SlowLink(a, b int, delay time.Duration) (restore func()) {
	c.t.Helper()
	c.inProcess(needsFaults)
	c.Server(a)
	c.Server(b)
	set := func(d time.Duration) {
		c.mu.Lock()
		c.slow[link{a, b}], c.slow[link{b, a}] = d, d
		c.mu.Unlock()
		c.links()
	}
	c.logs.printf("the link between %s and %s is slow: %v", host(a), host(b), delay)
	set(delay)
	return func() {
		c.logs.printf("the link between %s and %s has full speed again", host(a), host(b))
		set(0)
	}
}
