package httpport

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of the connections of an HTTP server.
const (
	MaxConns    = 256             // open connections of a port
	BodyTimeout = 5 * time.Second // for the body of a request that needs no body
	// evictAfter is how long the server waits for a client before it prefers the
	// connection to the oldest one of all when it must close one.
	evictAfter = 100 * time.Millisecond
)

// conns limits the open connections of an HTTP server, because any client that reaches the
// port may open some. When there are too many, we close the one that has waited for its
// client for the longest time: for a byte, for a complete header, for the body of an
// answered request, or for the client to read the answer. We work on the connections below
// TLS, because closing those never blocks. crypto/tls answers key updates while it reads,
// and a client that doesn't read the answers would keep the lock that closing needs.
type conns struct {
	mu     sync.Mutex
	open   []*conn // in the order of their acceptance
	closed bool
}

// conn is a connection of an HTTP server, below TLS.
type conn struct {
	net.Conn
	of *conns

	// of.mu protects these.
	since    time.Time          // when it was accepted, or its last request began or ended
	handlers int                // requests being handled; with HTTP/2 there may be several
	writes   int                // in progress
	written  time.Time          // when writes was last 0
	kept     bool               // an authorized transfer, which has its own deadlines
	closed   bool               // by any side
	cancel   context.CancelFunc // of the context of its requests; nil before there is one
}

// listener accepts connections that are bounded by conns.
type listener struct {
	net.Listener
	conns *conns
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, of: l.conns, since: time.Now()}
	if victim := l.conns.add(c); victim != nil {
		_ = victim.Close()
	}
	return c, nil
}

// add adds an accepted connection and returns the connection to close, if any.
func (c *conns) add(one *conn) (victim *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return one
	}
	c.open = append(c.open, one)
	if len(c.open) <= MaxConns {
		return nil
	}
	if victim = c.oldest(one); victim == nil {
		victim = one
	}
	return victim
}

// oldest chooses the connection to close in favor of another one; c.mu is held. If hardly
// any client keeps the server waiting, we choose the oldest of all, because its handler may
// only be waiting for its turn.
func (c *conns) oldest(but *conn) *conn {
	var waiting, oldest *conn
	var since time.Time
	for _, one := range c.open {
		if one == but || one.kept {
			continue
		}
		if oldest == nil || one.since.Before(oldest.since) {
			oldest = one
		}
		if at, waits := one.waits(); waits && (waiting == nil || at.Before(since)) {
			waiting, since = one, at
		}
	}
	if waiting != nil && time.Since(since) >= evictAfter {
		return waiting
	}
	return oldest
}

// waits reports whether the server waits for the client, and since when; of.mu is held.
func (c *conn) waits() (since time.Time, waits bool) {
	switch {
	case c.handlers == 0:
		return c.since, true
	case c.writes > 0:
		return c.written, true
	}
	return time.Time{}, false
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
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

// CloseWrite signals the end of the answer, so that the client gets it although we have not
// read the request.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close implements net.Conn. It also cancels the contexts of the requests.
func (c *conn) Close() error {
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

// close closes all connections. Connections accepted later are also closed.
func (c *conns) close() {
	c.mu.Lock()
	c.closed = true
	open := slices.Clone(c.open)
	c.mu.Unlock()
	for _, one := range open {
		_ = one.Close()
	}
}

// connKey is the key of a request's connection in its context.
type connKey struct{}

// context implements http.Server.ConnContext.
func (c *conns) context(ctx context.Context, nc net.Conn) context.Context {
	h := connOf(nc)
	if h == nil {
		return ctx
	}
	ctx, cancel := context.WithCancel(context.WithValue(ctx, connKey{}, h))
	c.mu.Lock()
	h.cancel = cancel
	closed := h.closed
	c.mu.Unlock()
	if closed {
		cancel()
	}
	return ctx
}

// connOf returns the connection below the one that a listener accepted.
func connOf(nc net.Conn) *conn {
	for {
		switch c := nc.(type) {
		case *conn:
			return c
		case interface{ NetConn() net.Conn }: // e.g. *tls.Conn
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// handle notes when h handles a request. Only a restore needs a body, and the server reads
// that before it answers. We answer other requests immediately, and allow BodyTimeout for
// their bodies.
func (c *conns) handle(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if one, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.begin(one)
			defer c.end(one)
		}
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close") // otherwise net/http waits for the body before it answers
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(BodyTimeout))
		}
		h.ServeHTTP(w, r)
	})
}

func (c *conns) begin(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.handlers++
	one.since = time.Now()
}

func (c *conns) end(one *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one.handlers--
	one.since, one.kept = time.Now(), one.kept && one.handlers > 0
}

// Keep keeps the connection of an authorized transfer open until the request has been
// handled, however many others there are.
func Keep(r *http.Request) {
	if c, ok := r.Context().Value(connKey{}).(*conn); ok {
		c.of.mu.Lock()
		c.kept = true
		c.of.mu.Unlock()
	}
}
