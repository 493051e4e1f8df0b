package server

import (
	"crypto/rand"
	"sync"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/proto"
)

// clientTable is the list of connections, and maps sessions to connections. Its mutex comes
// last in the lock order.
type clientTable struct {
	s *Server

	mu        sync.Mutex
	closing   bool // no more connections
	conns     map[*conn]struct{}
	perHost   map[string]int
	sessions  map[int64]*conn // by session id
	lost      limits.LostSessions
	locals    map[int64][proto.PasswordSize]byte // sessions of read-only mode
	lastLocal int64
	dialed    int
}

// prepare initializes t as the table of s.
func (t *clientTable) prepare(s *Server) {
	t.s, t.lost = s, limits.NewLostSessions(s.cfg.Limits.MaxClientCnxns)
	t.conns, t.perHost = make(map[*conn]struct{}), make(map[string]int)
	t.sessions, t.locals = make(map[int64]*conn), make(map[int64][proto.PasswordSize]byte)
}

// close makes t refuse further connections.
func (t *clientTable) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closing = true
}

// dial returns the number of the next in-process connection, 0 if there are no more.
func (t *clientTable) dial() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing {
		return 0
	}
	t.dialed++
	return t.dialed
}

// admit registers a new connection, unless there are too many.
func (t *clientTable) admit(c *conn) bool {
	s := t.s
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closing:
		return false
	case s.cfg.Limits.MaxCnxns > 0 && len(t.conns) >= s.cfg.Limits.MaxCnxns:
		s.stats.Rejected.Add(1)
		c.complain("closing a client: maxCnxns is reached", "maxCnxns", s.cfg.Limits.MaxCnxns)
		return false
	case s.cfg.Limits.MaxClientCnxns > 0 && c.host != "" && t.perHost[c.host] >= s.cfg.Limits.MaxClientCnxns:
		s.stats.Rejected.Add(1)
		c.complain("closing a client: maxClientCnxns is reached for its address", "maxClientCnxns", s.cfg.Limits.MaxClientCnxns)
		return false
	}
	t.conns[c] = struct{}{}
	t.perHost[c.host]++
	s.wg.Add(1)
	return true
}

// stopping reports whether the server is closing.
func (t *clientTable) stopping() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closing
}

// forget undoes admit, and releases the session unless it belongs to another connection by
// now.
func (t *clientTable) forget(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
	if t.perHost[c.host]--; t.perHost[c.host] == 0 {
		delete(t.perHost, c.host)
	}
	if t.sessions[c.session.id] == c {
		delete(t.sessions, c.session.id)
		if !c.session.local {
			t.lost.Add(c.session.id, c.host)
		}
	}
}

// each calls f for every connection. It doesn't hold the mutex while f runs.
func (t *clientTable) each(f func(*conn)) {
	t.mu.Lock()
	all := make([]*conn, 0, len(t.conns))
	for c := range t.conns {
		all = append(all, c)
	}
	t.mu.Unlock()
	for _, c := range all {
		f(c)
	}
}

// count returns the number of connections, and of sessions of read-only mode.
func (t *clientTable) count() (conns, locals int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns), len(t.locals)
}

// own makes c the connection of its session. The tree is locked, so c can't leave at
// the same time.
func (t *clientTable) own(c *conn) {
	t.mu.Lock()
	t.sessions[c.session.id] = c
	t.lost.Remove(c.session.id)
	t.mu.Unlock()
}

// displace closes this server's connection of a session, unless it is p's.
func (t *clientTable) displace(sid int64, p *pending) {
	t.mu.Lock()
	c := t.sessions[sid]
	t.mu.Unlock()
	if c != nil && (p == nil || p.c != c) {
		c.kill()
	}
}

// sessionClosed closes the connection of a session that has ended. The connection that
// asked for it gets its answer and closes by itself.
func (t *clientTable) sessionClosed(sid int64, p *pending) {
	t.mu.Lock()
	c := t.sessions[sid]
	delete(t.sessions, sid)
	t.lost.Remove(sid)
	t.mu.Unlock()
	if c != nil && (p == nil || p.c != c) {
		c.kill()
	}
}

// live appends the sessions of clients that have shown life, and reports them as of now.
func (t *clientTable) live(dst []int64, now, touch int64) []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	for sid, c := range t.sessions {
		if c.session.heard.Swap(false) || c.replies.waits() {
			c.session.signs.Reported(now, touch)
			dst = append(dst, sid)
		}
	}
	return dst
}

// attachLocal gives c the session of read-only mode that req asks for, and sets the id in
// req if it is a new one. It returns false if there is no such session.
func (t *clientTable) attachLocal(req *proto.ConnectRequest, c *conn) (pw [proto.PasswordSize]byte, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pw, known := t.locals[req.SessionID]
	switch {
	case req.SessionID == 0:
		t.forgetLocal()
		t.lastLocal++
		req.SessionID = localSessions | t.lastLocal
		rand.Read(pw[:])
		t.locals[req.SessionID] = pw
	case !known || string(pw[:]) != string(req.Passwd):
		return pw, false
	}
	t.sessions[req.SessionID] = c
	return pw, true
}

// maxLocals is how many sessions a server in read-only mode remembers. Above that, it
// forgets sessions that their clients didn't close.
const maxLocals = 10_000

// forgetLocal makes room for another local session; t.mu is held.
func (t *clientTable) forgetLocal() {
	if len(t.locals) < maxLocals {
		return
	}
	for sid := range t.locals {
		if t.sessions[sid] == nil {
			delete(t.locals, sid)
			return
		}
	}
}

// endLocals ends all sessions of read-only mode.
func (t *clientTable) endLocals() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.locals)
}

// endLocal ends a session of read-only mode at its client's request.
func (t *clientTable) endLocal(sid int64) {
	t.mu.Lock()
	delete(t.locals, sid)
	t.mu.Unlock()
}

// mayBegin reports whether the address of c may begin another session.
func (t *clientTable) mayBegin(c *conn) bool {
	s := t.s
	if c.host == "" {
		return true
	}
	t.mu.Lock()
	n, ok := t.lost.Of(c.host)
	t.mu.Unlock()
	if ok {
		return true
	}
	s.stats.Rejected.Add(1)
	c.complain("closing a client: its address has too many sessions that have lost their connections", "sessions", n, "maxClientCnxns", s.cfg.Limits.MaxClientCnxns)
	return false
}

// forgetLost forgets which sessions have lost their connections.
func (t *clientTable) forgetLost() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost.Clear()
}
