package zktest

import (
	"net"
	"sync"
)

// clientConn is the server's end of a client's connection. It can hang: in that case
// nothing gets through in either direction, but we lose no data.
type clientConn struct {
	net.Conn
	gate *gate
	key  string // the client's address
	done chan struct{}
	once sync.Once

	frames frames // the server's output

	mu   sync.Mutex
	hung chan struct{} // closed by release; nil: the connection works
	slow slowness
}

// direct has the additional methods of an in-process connection.
type direct interface {
	WaitRead() error
	TryWrite(b []byte) (int, error)
}

// directConn is an in-process clientConn.
type directConn struct {
	*clientConn
	inner direct
}

func newClientConn(nc net.Conn, g *gate) *clientConn {
	return &clientConn{Conn: nc, gate: g, key: nc.RemoteAddr().String(), done: make(chan struct{})}
}

// asConn returns the connection to hand to the server.
func (c *clientConn) asConn() net.Conn {
	if d, ok := c.Conn.(direct); ok {
		return directConn{c, d}
	}
	return c
}

// hang stops all traffic until release.
func (c *clientConn) hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung == nil {
		c.hung = make(chan struct{})
	}
}

func (c *clientConn) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hung != nil {
		close(c.hung)
		c.hung = nil
	}
}

// hanging returns a channel that is closed when c resumes, or nil if c doesn't hang.
func (c *clientConn) hanging() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hung
}

// await blocks while c hangs.
func (c *clientConn) await() error {
	for {
		hung := c.hanging()
		if hung == nil {
			return nil
		}
		select {
		case <-hung:
		case <-c.done:
			return net.ErrClosed
		}
	}
}

// Read implements net.Conn. We delay data that arrives while c hangs.
func (c *clientConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if hung := c.await(); hung != nil {
		return 0, hung
	}
	if n > 0 && !c.dawdle(n) {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write implements net.Conn. It blocks while c hangs, as it would on a full socket.
func (c *clientConn) Write(b []byte) (int, error) {
	c.gate.tape.said(c, b)
	if !c.dawdle(len(b)) {
		return 0, net.ErrClosed
	}
	if err := c.await(); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// Close implements net.Conn. If the server is paused, we hide the close from its client
// until Resume.
func (c *clientConn) Close() error {
	later := false
	c.once.Do(func() {
		close(c.done)
		c.gate.tape.forget(c.key)
		later = c.gate.forget(c)
	})
	if later || c.gate.closesLater(c) {
		return nil
	}
	return c.Conn.Close()
}

// WaitRead blocks until data can be read.
func (c directConn) WaitRead() error {
	err := c.inner.WaitRead()
	if hung := c.await(); hung != nil {
		return hung
	}
	return err
}

// TryWrite writes as much as it can without blocking, i.e. nothing while c hangs or is slow.
func (c directConn) TryWrite(b []byte) (int, error) {
	if c.hanging() != nil || c.slowness() != (slowness{}) {
		return 0, nil
	}
	n, err := c.inner.TryWrite(b)
	c.gate.tape.said(c.clientConn, b[:max(n, 0)])
	return n, err
}
