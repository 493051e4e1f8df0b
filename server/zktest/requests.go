package zktest

import (
	"maps"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
)

// Request implements server.Interceptor: it counts, and lets the first fault
// that the request meets take its course.
func (g *gate) Request(q server.Request) server.Verdict {
	r := Request{Op: q.Op, Session: q.Session}
	paths := pathsOf(q.Op, q.Body)
	if q.Op != proto.OpMulti && q.Op != proto.OpMultiRead && len(paths) > 0 {
		r.Path = paths[0]
	}
	if q.Op != proto.OpCreateSession {
		g.tape.request(q, paths)
	}
	g.mu.Lock()
	if q.Op != proto.OpCreateSession {
		g.counts[r]++
	}
	f := g.takeFault(r, paths)
	c := g.conns[q.Addr.String()]
	g.mu.Unlock()
	if f == nil || c == nil {
		return server.Verdict{}
	}
	return f.strike(g, r, c)
}

// Requests returns how many of the requests read so far are meant; Nth means
// nothing here, and a multi is one request without a path. Handshakes are none.
func (s *Server) Requests(m Match) int {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	n := 0
	for r, count := range s.gate.counts {
		if m.Means(r) {
			n += count
		}
	}
	return n
}

// RequestCounts returns all requests read so far with how often each came.
func (s *Server) RequestCounts() map[Request]int {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return maps.Clone(s.gate.counts)
}

// ForgetRequests begins the counting anew.
func (s *Server) ForgetRequests() {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	clear(s.gate.counts)
}
