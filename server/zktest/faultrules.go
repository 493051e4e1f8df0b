package zktest

import (
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
)

// Fault is a planned fault for one request, or with FailAll for several.
type Fault struct {
	s       *Server
	what    string
	match   Match
	left    int           // matching requests to let pass first
	always  bool          // applies to all following matches, too
	struck  chan struct{} // closed when the fault has struck
	delay   time.Duration
	verdict server.Verdict
	once    sync.Once
}

// FailNext fails the next matching request with a protocol error code, e.g.
// proto.ErrNoAuth. The server doesn't execute the request. A handshake has only one
// error code, proto.ErrSessionExpired, which tells the client that its session has
// expired.
func (s *Server) FailNext(m Match, code proto.Code) *Fault {
	s.t.Helper()
	s.inProcess(needsFaults)
	return s.plan(&Fault{what: "fails with " + code.String(), match: m, verdict: server.Verdict{Code: code}})
}

// FailAll is FailNext for all matching requests until Cancel.
func (s *Server) FailAll(m Match, code proto.Code) *Fault {
	s.t.Helper()
	s.inProcess(needsFaults)
	return s.plan(&Fault{what: "fails with " + code.String(), match: m, verdict: server.Verdict{Code: code}, always: true})
}

// DelayNext delays the next matching request and all later requests of the same client.
// Advance shortens the delay.
func (s *Server) DelayNext(m Match, d time.Duration) *Fault {
	s.t.Helper()
	s.inProcess(needsFaults)
	return s.plan(&Fault{what: "is delayed by " + d.String(), match: m, delay: d})
}

// LoseReply executes the next matching request and closes the connection instead of
// replying, so that the client can't know whether the server executed the request.
func (s *Server) LoseReply(m Match) *Fault {
	s.t.Helper()
	s.inProcess(needsFaults)
	return s.plan(&Fault{what: "loses its reply", match: m, verdict: server.Verdict{Lose: true}})
}

// LoseNext closes the connection when the next matching request arrives. The server doesn't
// execute the request, but the client can't know that either.
func (s *Server) LoseNext(m Match) *Fault {
	s.t.Helper()
	s.inProcess(needsFaults)
	return s.plan(&Fault{what: "is lost", match: m, verdict: server.Verdict{Drop: true}})
}

// plan appends a fault to the planned ones. Only the first fault that matches a
// request applies to it.
func (s *Server) plan(f *Fault) *Fault {
	s.t.Helper()
	f.s, f.left, f.struck = s, max(f.match.Nth, 1)-1, make(chan struct{})
	s.gate.log("planned: %v %s", f.match, f.what)
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.faults = append(s.gate.faults, f)
	return f
}

// Wait waits until the fault has struck.
func (f *Fault) Wait() {
	f.s.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-f.struck:
	case <-timer.C:
		f.s.fatalf("not within %v: %v, which %s", patience, f.match, f.what)
	}
}

// Happened reports whether the fault has struck.
func (f *Fault) Happened() bool {
	select {
	case <-f.struck:
		return true
	default:
		return false
	}
}

// Cancel cancels the fault if it hasn't struck yet.
func (f *Fault) Cancel() {
	g := f.s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = slices.DeleteFunc(g.faults, func(o *Fault) bool { return o == f })
}

// takeFault returns the fault that applies to a request. Every fault that matches the
// request counts it. The caller holds g.mu.
func (g *gate) takeFault(r Request, paths []string) *Fault {
	for i, f := range g.faults {
		if !f.match.meets(r, paths) {
			continue
		}
		if f.left > 0 {
			f.left--
			continue
		}
		if !f.always {
			g.faults = slices.Delete(g.faults, i, i+1)
		}
		return f
	}
	return nil
}

// strike applies the fault to the request r of c.
func (f *Fault) strike(g *gate, r Request, c *clientConn) server.Verdict {
	g.log("%v %s", r, f.what)
	end := g.clock.now().Add(f.delay) // we compute this before a waiter learns of the fault and moves the clock
	f.once.Do(func() { close(f.struck) })
	if f.delay > 0 && !g.clock.sleepUntil(end, c.done) {
		return server.Verdict{Drop: true}
	}
	return f.verdict
}
