package zktest

import (
	"maps"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
)

// Request implements server.Interceptor. We count the request and apply the first fault
// that matches.
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

// Requests returns the number of matching requests read so far. It ignores Nth. A
// multi counts as one request without a path, and handshakes don't count.
func (s *Server) Requests(m Match) int {
	s.t.Helper()
	s.inProcess(needsInsight)
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

// RequestCounts returns all requests read so far, each with its count.
func (s *Server) RequestCounts() map[Request]int {
	s.t.Helper()
	s.inProcess(needsInsight)
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	return maps.Clone(s.gate.counts)
}

// ForgetRequests resets the counts.
func (s *Server) ForgetRequests() {
	s.t.Helper()
	s.inProcess(needsInsight)
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	clear(s.gate.counts)
}
