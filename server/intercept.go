package server

import (
	"net"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/watch"
)

// Interceptor gets in between the clients and a Server, for tests of what
// happens to a client when things go wrong. Its methods are called by many
// goroutines.
type Interceptor interface {
	// Accept is given every new connection and returns the one by which the
	// server is to talk to that client; nil turns the client away.
	Accept(nc net.Conn) net.Conn
	// Request is called for every request of a client, in its order and before
	// anything is done about it. While it has not returned, nothing more of that
	// client is read. The handshake comes as proto.OpCreateSession with the
	// session that the client wants to go on with, 0 for none. It knows of one
	// code only, ErrSessionExpired; with any other one the connection is closed.
	Request(r Request) Verdict
	// Live is given the sessions that the server is about to report as alive,
	// and returns those that it shall report.
	Live(sessions []int64) []int64
}

// Request is what an Interceptor gets to see.
type Request struct {
	Session int64
	Addr    net.Addr // the client's
	Op      proto.Op
	Xid     int32
	Body    []byte // what came behind the header, which may not decode; valid during the call
}

// Verdict says what is to be done about a request. The zero value lets it pass.
type Verdict struct {
	Code proto.Code // not Ok: the answer; nothing is executed
	Drop bool       // the connection is closed; nothing is executed
	Lose bool       // it is executed, and the connection closed instead of an answer
}

// intercept asks the Interceptor about a request and does as it says.
func (c *conn) intercept(w *work, h proto.RequestHeader, body []byte) bool {
	c.settle(w) // what was answered so far leaves first, and nothing stays locked
	c.flush()
	v := c.s.cfg.Interceptor.Request(Request{Session: c.sid, Addr: c.nc.RemoteAddr(), Op: h.Op, Xid: h.Xid, Body: body})
	switch {
	case v.Drop:
		return false
	case v.Lose:
		c.executeUnanswered(w, h, body)
		return false
	case v.Code != proto.Ok:
		if h.Op == proto.OpCloseSession {
			return c.read(w, h, nil, v.Code) // the session goes on
		}
		return c.read(w, h, body, v.Code)
	}
	return c.execute(w, h, body)
}

// interceptConnect asks the Interceptor about a handshake and does as it says.
func (c *conn) interceptConnect(req *proto.ConnectRequest, frame []byte) bool {
	ic := c.s.cfg.Interceptor
	if ic == nil {
		return c.connect(req)
	}
	v := ic.Request(Request{Session: req.SessionID, Addr: c.nc.RemoteAddr(), Op: proto.OpCreateSession, Body: frame})
	switch {
	case v.Drop:
		return false
	case v.Lose:
		c.mu.Lock()
		c.writing = true // by nobody: the answer stays here
		c.mu.Unlock()
		c.connect(req)
		return false
	case v.Code == proto.ErrSessionExpired:
		return c.sessionExpired(c.s.getWork(c), req.HasReadOnly)
	case v.Code != proto.Ok:
		return false
	}
	return c.connect(req)
}

// executeUnanswered executes a request and waits until that has been done, with
// everything before it answered and nothing of it.
func (c *conn) executeUnanswered(w *work, h proto.RequestHeader, body []byte) {
	if !c.await(func() bool { return c.head == nil && c.out == nil && !c.writing }) {
		return
	}
	c.mu.Lock()
	c.writing = true // by nobody: whatever is queued stays here
	c.mu.Unlock()
	if c.execute(w, h, body) {
		c.settle(w)
		c.await(func() bool { return c.head == nil })
	}
}

// ServeConn serves a client on a connection that the caller has accepted. It
// returns at once; the connection is the server's from then on.
func (s *Server) ServeConn(nc net.Conn) { s.begin(nc, nil) }

// Watch is one watch of a client of a Server.
type Watch struct {
	Session int64
	Path    string
	Kind    watch.Kind
}

// Watches returns all watches of the clients that are connected here, in no
// order.
func (s *Server) Watches() []Watch {
	var list []Watch
	s.watches.Each(func(w *watch.Watcher, path string, k watch.Kind) {
		list = append(list, Watch{Session: watcherSession(w), Path: path, Kind: k})
	})
	return list
}
