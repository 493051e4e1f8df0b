package server

import (
	"net"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/watch"
)

// Interceptor sits between the clients and a Server, for tests of clients under faults. Its
// methods must be safe for concurrent use.
type Interceptor interface {
	// Accept gets every new connection and returns the connection that the server
	// should use for that client; nil rejects the client.
	Accept(nc net.Conn) net.Conn
	// Request is called for every request of a client, in order and before the server
	// acts on it. Until it returns, the server reads nothing more from that client. The
	// handshake arrives as proto.OpCreateSession with the session that the client wants
	// to resume, 0 for none. Its only valid code is ErrSessionExpired; any other code
	// closes the connection.
	Request(r Request) Verdict
	// Live gets the sessions that the server is about to report as alive, and returns the
	// sessions that it should report.
	Live(sessions []int64) []int64
}

// Request describes a request to an Interceptor.
type Request struct {
	Session int64
	Addr    net.Addr // the client's
	Op      proto.Op
	Xid     int32
	Body    []byte // the request after its header, which may not decode; valid during the call
}

// Verdict decides how the server handles a request. With the zero value, the server executes
// it as usual.
type Verdict struct {
	Code proto.Code // not Ok: the server answers with this code and executes nothing
	Drop bool       // the server closes the connection and executes nothing
	Lose bool       // the server executes the request and closes the connection instead of answering
}

// intercept asks the Interceptor about a request and obeys the verdict.
func (r *reader) intercept(w *work, h proto.RequestHeader, body []byte) bool {
	c := r.c
	r.settle(w) // so that the answers so far are sent first, and no lock is held
	c.replies.flush()
	v := c.s.cfg.Env.Interceptor.Request(Request{Session: c.session.id, Addr: c.nc.RemoteAddr(), Op: h.Op, Xid: h.Xid, Body: body})
	switch {
	case v.Drop:
		return false
	case v.Lose:
		r.executeUnanswered(w, h, body)
		return false
	case v.Code != proto.Ok:
		if h.Op == proto.OpCloseSession {
			return r.read(w, h, nil, v.Code) // the session continues
		}
		return r.read(w, h, body, v.Code)
	}
	return r.execute(w, h, body)
}

// interceptConnect asks the Interceptor about a handshake and obeys the verdict.
func (c *conn) interceptConnect(req *proto.ConnectRequest, frame []byte) bool {
	ic := c.s.cfg.Env.Interceptor
	if ic == nil {
		return c.connect(req)
	}
	v := ic.Request(Request{Session: req.SessionID, Addr: c.nc.RemoteAddr(), Op: proto.OpCreateSession, Body: frame})
	switch {
	case v.Drop:
		return false
	case v.Lose:
		c.replies.mute()
		c.connect(req)
		return false
	case v.Code == proto.ErrSessionExpired:
		return c.sessionExpired(c.reader.getWork(), req.HasReadOnly)
	case v.Code != proto.Ok:
		return false
	}
	return c.connect(req)
}

// executeUnanswered executes a request and waits until that is done. It answers all
// requests before it, but not the request itself.
func (r *reader) executeUnanswered(w *work, h proto.RequestHeader, body []byte) {
	c := r.c
	if !c.replies.await(func() bool { return c.replies.head == nil && c.replies.out == nil && !c.replies.writing }) {
		return
	}
	c.replies.mute()
	if r.execute(w, h, body) {
		r.settle(w)
		c.replies.awaitAnswers()
	}
}

// ServeConn serves a client on a connection that the caller has accepted. It returns
// immediately; the server then owns the connection.
func (s *Server) ServeConn(nc net.Conn) { s.begin(nc, nil) }

// Watch is a watch of a Server's client.
type Watch struct {
	Session int64
	Path    string
	Kind    watch.Kind
}

// Watches returns all watches of the clients connected to this server, in no particular
// order.
func (s *Server) Watches() []Watch {
	var list []Watch
	s.watches.Each(func(w *watch.Watcher, path string, k watch.Kind) {
		list = append(list, Watch{Session: watcherSession(w), Path: path, Kind: k})
	})
	return list
}
