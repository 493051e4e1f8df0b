package zktest

import (
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
)

// Fault is something that will happen to one request.
type Fault struct {
	s       *Server
	what    string
	match   Match
	left    int           // requests to let pass
	always  bool          // it happens to all that follow, too
	struck  chan struct{} // closed when it happened
	delay   time.Duration
	verdict server.Verdict
	once    sync.Once
}

// FailNext refuses the next request that is meant, with a code of the protocol
// such as proto.ErrNoAuth. It is not executed. A handshake, which knows of no
// other code, is told with proto.ErrSessionExpired that its session is no more.
func (s *Server) FailNext(m Match, code proto.Code) *Fault {
	s.t.Helper()
	return s.plan(&Fault{what: "fails with " + code.String(), match: m, verdict: server.Verdict{Code: code}})
}

// FailAll is FailNext for all requests that are meant, until Cancel.
func (s *Server) FailAll(m Match, code proto.Code) *Fault {
	s.t.Helper()
	return s.plan(&Fault{what: "fails with " + code.String(), match: m, verdict: server.Verdict{Code: code}, always: true})
}

// DelayNext holds up the next request that is meant, and all that its client
// sends behind it. Advance shortens the wait.
func (s *Server) DelayNext(m Match, d time.Duration) *Fault {
	s.t.Helper()
	return s.plan(&Fault{what: "is held up for " + d.String(), match: m, delay: d})
}

// LoseReply executes the next request that is meant and closes the connection
// instead of answering: the client cannot know whether it was done.
func (s *Server) LoseReply(m Match) *Fault {
	s.t.Helper()
	return s.plan(&Fault{what: "loses its reply", match: m, verdict: server.Verdict{Lose: true}})
}

// LoseNext closes the connection when the next request that is meant comes. It
// is not executed, which the client cannot know either.
func (s *Server) LoseNext(m Match) *Fault {
	s.t.Helper()
	return s.plan(&Fault{what: "is lost", match: m, verdict: server.Verdict{Drop: true}})
}

// plan adds a fault behind those that are planned. A request meets one fault,
// the first that means it.
func (s *Server) plan(f *Fault) *Fault {
	s.t.Helper()
	f.s, f.left, f.struck = s, max(f.match.Nth, 1)-1, make(chan struct{})
	s.gate.log("planned: %v %s", f.match, f.what)
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.faults = append(s.gate.faults, f)
	return f
}

// Wait waits until it has begun to happen.
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

// Happened reports whether it has begun to happen.
func (f *Fault) Happened() bool {
	select {
	case <-f.struck:
		return true
	default:
		return false
	}
}

// Cancel calls it off if it has not happened.
func (f *Fault) Cancel() {
	g := f.s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults = slices.DeleteFunc(g.faults, func(o *Fault) bool { return o == f })
}

// takeFault returns the fault that a request meets; g.mu is held. Every fault
// that means the request counts it.
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

// strike lets the fault happen to the request r of c.
func (f *Fault) strike(g *gate, r Request, c *clientConn) server.Verdict {
	g.log("%v %s", r, f.what)
	end := g.clock.now().Add(f.delay) // before who waits for this hears of it, and moves the clock
	f.once.Do(func() { close(f.struck) })
	if f.delay > 0 && !g.clock.sleepUntil(end, c.done) {
		return server.Verdict{Drop: true}
	}
	return f.verdict
}
