package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of the connections of an HTTP server.
const (
	maxHTTPConns = 256             // open connections of a port
	bodyTimeout  = 5 * time.Second // for the body of a request that needs none
	// evictAfter is how long the server waits for a client before it prefers the
	// connection to the oldest one of all when it must close one.
	evictAfter = 100 * time.Millisecond
)

// httpConns bounds the open connections of an HTTP server, from their acceptance on:
// anyone who reaches the port may open some. When there are too many, it closes the one
// that has waited for its client for the longest time: for a byte, for a complete header,
// for the body of an answered request, or for the client to take the answer. It works on
// the connections below TLS, because closing those never blocks. crypto/tls answers key
// updates while it reads, and a client that doesn't take the answers would keep the
// lock that closing needs.
type httpConns struct {
	mu     sync.Mutex
	open   []*httpConn // in the order of their acceptance
	closed bool
}

// httpConn is a connection of an HTTP server, below TLS.
type httpConn struct {
	net.Conn
	of *httpConns

	// of.mu protects these.
	since    time.Time          // when it was accepted, or its last request began or ended
	handlers int                // requests being handled; with HTTP/2 there may be several
	writes   int                // in progress
	written  time.Time          // when writes was last 0
	kept     bool               // an authorized transfer, which has deadlines of its own
	closed   bool               // by any side
	cancel   context.CancelFunc // of the context of its requests; nil before there is one
}

// httpListener accepts connections that are bounded by conns.
type httpListener struct {
	net.Listener
	conns *httpConns
}

// Accept implements net.Listener.
func (l *httpListener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &httpConn{Conn: raw, of: l.conns, since: time.Now()}
	if victim := l.conns.add(c); victim != nil {
		_ = victim.Close()
	}
	return c, nil
}

// add adds an accepted connection and returns the connection to close, if any.
func (c *httpConns) add(conn *httpConn) (victim *httpConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return conn
	}
	c.open = append(c.open, conn)
	if len(c.open) <= maxHTTPConns {
		return nil
	}
	if victim = c.oldest(conn); victim == nil {
		victim = conn
	}
	return victim
}

// oldest chooses the connection to close in favor of another one; c.mu is held. If
// hardly any client keeps the server waiting, the oldest of all makes room: the handler
// may wait for its turn.
func (c *httpConns) oldest(but *httpConn) *httpConn {
	var waiting, oldest *httpConn
	var since time.Time
	for _, conn := range c.open {
		if conn == but || conn.kept {
			continue
		}
		if oldest == nil || conn.since.Before(oldest.since) {
			oldest = conn
		}
		if at, waits := conn.waits(); waits && (waiting == nil || at.Before(since)) {
			waiting, since = conn, at
		}
	}
	if waiting != nil && time.Since(since) >= evictAfter {
		return waiting
	}
	return oldest
}

// waits reports whether the server waits for the client, and since when; of.mu is held.
func (c *httpConn) waits() (since time.Time, waits bool) {
	switch {
	case c.handlers == 0:
		return c.since, true
	case c.writes > 0:
		return c.written, true
	}
	return time.Time{}, false
}

// Write implements net.Conn.
func (c *httpConn) Write(b []byte) (int, error) {
	c.of.mu.Lock()
	if c.writes == 0 {
		c.written = time.Now()
	}
	c.writes++
	c.of.mu.Unlock()
	n, err := c.Conn.Write(b)
	c.of.mu.Lock()
	c.writes--
	c.of.mu.Unlock()
	return n, err
}

// CloseWrite tells the client that nothing follows, so that it gets an answer although
// its request has not been read.
func (c *httpConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn. It also cancels the contexts of the requests.
func (c *httpConn) Close() error {
	c.of.mu.Lock()
	if i := slices.Index(c.of.open, c); i >= 0 {
		c.of.open = slices.Delete(c.of.open, i, i+1)
	}
	c.closed = true
	cancel := c.cancel
	c.of.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	return c.Conn.Close()
}

// close closes all connections, also those that are accepted later.
func (c *httpConns) close() {
	c.mu.Lock()
	c.closed = true
	open := slices.Clone(c.open)
	c.mu.Unlock()
	for _, conn := range open {
		_ = conn.Close()
	}
}

// httpConnKey is the key of a request's connection in its context.
type httpConnKey struct{}

// context implements http.Server.ConnContext.
func (c *httpConns) context(ctx context.Context, conn net.Conn) context.Context {
	h := httpConnOf(conn)
	if h == nil {
		return ctx
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, httpConnKey{}, h))
	c.mu.Lock()
	h.cancel = cancel
	closed := h.closed
	c.mu.Unlock()
	if closed {
		cancel()
	}
	return ctx
}

// httpConnOf returns the connection below what a listener accepted.
func httpConnOf(conn net.Conn) *httpConn {
	for {
		switch c := conn.(type) {
		case *httpConn:
			return c
		case *tls.Conn:
			conn = c.NetConn()
		case *unreadConn:
			conn = c.Conn
		default:
			return nil
		}
	}
}

// handle notes when h handles a request. No request but a restore needs a body, and the
// server reads that before it answers. So others are answered at once, and their bodies
// have bodyTimeout to arrive.
func (c *httpConns) handle(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(httpConnKey{}).(*httpConn); ok {
			c.begin(conn)
			defer c.end(conn)
		}
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close") // otherwise net/http waits for the body before it answers
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
		}
		h.ServeHTTP(w, r)
	})
}

func (c *httpConns) begin(conn *httpConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.handlers++
	conn.since = time.Now()
}

func (c *httpConns) end(conn *httpConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	conn.handlers--
	conn.since, conn.kept = time.Now(), conn.kept && conn.handlers > 0
}

// keepHTTP keeps the connection of an authorized transfer open until the request has been
// handled, however many others there are.
func keepHTTP(r *http.Request) {
	if conn, ok := r.Context().Value(httpConnKey{}).(*httpConn); ok {
		conn.of.mu.Lock()
		conn.kept = true
		conn.of.mu.Unlock()
	}
}
