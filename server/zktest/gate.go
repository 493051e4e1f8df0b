package zktest

import (
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/server"
)

// gate intercepts all connections and requests of one server. It implements
// server.Interceptor.
type gate struct {
	clock *clock
	log   func(format string, args ...any)
	srv   atomic.Pointer[server.Server] // nil until the server has started
	alive atomic.Pointer[func() []int64]
	tape  tape

	mu       sync.Mutex
	conns    map[string]*clientConn // by the client's address
	refusing bool                   // new connections are closed
	paused   bool                   // the server is paused: new connections hang,
	ended    map[*clientConn]bool   // and connections that it has closed stay open
	slow     slowness               // for new connections
	faults   []*Fault
	counts   map[Request]int
}

var _ server.Interceptor = (*gate)(nil)

func newGate(c *clock, log func(string, ...any)) *gate {
	return &gate{clock: c, log: log, conns: make(map[string]*clientConn), counts: make(map[Request]int)}
}

// Accept implements server.Interceptor.
func (g *gate) Accept(nc net.Conn) net.Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusing {
		return nil
	}
	c := newClientConn(nc, g)
	if g.paused {
		c.hang()
	}
	c.slow = g.slow
	g.conns[c.key] = c
	return c.asConn()
}

// forget is called for every connection that the server closes. It reports whether we have
// to postpone the close because the server is paused.
func (g *gate) forget(c *clientConn) (later bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.conns[c.key] == c {
		delete(g.conns, c.key)
	}
	if g.paused {
		g.ended[c] = true
	}
	return g.paused
}

// closesLater reports whether forget has postponed the close of c.
func (g *gate) closesLater(c *clientConn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ended[c]
}

// pause makes every connection hang, or resume.
func (g *gate) pause(on bool) {
	g.mu.Lock()
	if on && g.paused {
		g.mu.Unlock()
		return
	}
	was := g.ended
	g.paused, g.ended = on, make(map[*clientConn]bool)
	g.mu.Unlock()
	for c := range was {
		_ = c.Conn.Close()
	}
	for _, c := range g.ofSession(0) {
		if on {
			c.hang()
		} else {
			c.release()
		}
	}
}

// Live implements server.Interceptor. A client doesn't count as live if its connection
// hangs. While Advance moves the clock, all other clients do.
func (g *gate) Live(sessions []int64) []int64 {
	if hung := g.sessions(true); len(hung) > 0 {
		reachable := g.sessions(false)
		sessions = slices.DeleteFunc(sessions, func(id int64) bool {
			return slices.Contains(hung, id) && !slices.Contains(reachable, id)
		})
	}
	if alive := g.alive.Load(); alive != nil {
		sessions = append(sessions, (*alive)()...)
	}
	return sessions
}

// sessions returns the sessions of the connections that hang, or of the others.
func (g *gate) sessions(hung bool) []int64 {
	g.mu.Lock()
	some := make(map[string]bool)
	for key, c := range g.conns {
		if (c.hanging() != nil) == hung {
			some[key] = true
		}
	}
	g.mu.Unlock()
	srv := g.srv.Load()
	if len(some) == 0 || srv == nil {
		return nil
	}
	var ids []int64
	for _, c := range srv.Connections() {
		if c.Session != 0 && some[c.Addr] {
			ids = append(ids, c.Session)
		}
	}
	return ids
}

// ofSession returns the connections of a session, or all connections for id 0.
func (g *gate) ofSession(id int64) []*clientConn {
	var addrs []string
	if srv := g.srv.Load(); srv != nil && id != 0 {
		for _, c := range srv.Connections() {
			if c.Session == id {
				addrs = append(addrs, c.Addr)
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []*clientConn
	for key, c := range g.conns {
		if id == 0 || slices.Contains(addrs, key) {
			list = append(list, c)
		}
	}
	return list
}

// drop closes connections as a network failure would, and waits until the server has
// noticed.
func (g *gate) drop(list []*clientConn) bool {
	for _, c := range list {
		_ = c.Close()
	}
	srv := g.srv.Load()
	return poll(func() bool {
		for _, here := range srv.Connections() {
			if slices.ContainsFunc(list, func(c *clientConn) bool { return c.key == here.Addr }) {
				return false
			}
		}
		return true
	})
}

// set changes a flag.
func (g *gate) set(which *bool, to bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	*which = to
}

func (g *gate) isRefusing() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusing
}
