package quorum

import (
	"errors"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// The kernel reports a dead path late. If packets are silently dropped, the connection
// looks idle, TCP keep-alive doesn't run while data is unacknowledged, and
// retransmissions continue for 15 minutes. So every stream has its own deadlines, in both
// directions, that measure progress instead of time: a large message may need minutes on
// a slow link, as long as bytes move. See package transport for the limits of Raft's
// streams.

// writeStep bounds one write to a connection with a progress limit.
const writeStep = 64 << 10

// tracked is a connection that its Hub closes.
type tracked struct {
	net.Conn
	hub *Hub

	heard atomic.Int64 // time of the last received byte
	crowd crowd        // the crowd that counts it; guarded by the hub's mu

	stall atomic.Int64 // a Write must make progress within it; 0: no limit
	alive func() bool  // called after a stalled Write, reports whether the other side is alive; set before stall
}

// Close implements net.Conn.
func (c *tracked) Close() error {
	c.hub.mu.Lock()
	delete(c.hub.conns, c)
	c.hub.leave(c)
	c.hub.mu.Unlock()
	return c.Conn.Close()
}

// Read implements net.Conn.
func (c *tracked) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.heard.Store(time.Now().UnixNano())
	}
	return n, err
}

// Write implements net.Conn. It is below TLS, which must not see a deadline that is
// extended later.
func (c *tracked) Write(p []byte) (int, error) {
	limit := time.Duration(c.stall.Load())
	if limit == 0 {
		return c.Conn.Write(p)
	}
	written := 0
	for {
		_ = c.Conn.SetWriteDeadline(time.Now().Add(limit))
		n, err := c.Conn.Write(p[written:min(len(p), written+writeStep)])
		written += n
		switch {
		case err == nil && written == len(p):
			return written, nil
		case err == nil, errors.Is(err, os.ErrDeadlineExceeded) && (n > 0 || c.alive != nil && c.alive()):
		default:
			return written, err
		}
	}
}

// LimitWrites makes every Write to a stream fail if it makes no progress within limit. If
// alive isn't nil, a Write that exceeds the limit continues as long as alive returns true.
// Callers must call LimitWrites before the first Write.
func LimitWrites(stream net.Conn, limit time.Duration, alive func() bool) {
	for {
		switch c := stream.(type) {
		case *tracked:
			c.alive = alive
			c.stall.Store(int64(limit))
			return
		case *unreadConn:
			stream = c.Conn
		case interface{ NetConn() net.Conn }: // TLS
			stream = c.NetConn()
		default:
			return
		}
	}
}
