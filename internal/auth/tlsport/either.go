package tlsport

import (
	"crypto/tls"
	"net"
	"sync"
	"time"
)

// eitherListener accepts connections on a port where clients may speak TLS or plaintext. If
// a connection begins with a TLS handshake, we return it as *tls.Conn. To find out, we wait
// for the first byte. A slow connection doesn't delay others. The listener below bounds the
// number of connections that wait.
type eitherListener struct {
	net.Listener
	config *tls.Config
	detect time.Duration // time limit for the first byte
	ready  chan net.Conn

	done chan struct{} // closed by Close
	once sync.Once
	wg   sync.WaitGroup // every goroutine

	mu      sync.Mutex
	waiting map[net.Conn]struct{} // for the first byte; nil once closed
	err     error                 // error of the listener; set before done is closed
}

// AcceptPause is how long a server waits before it accepts again after the system has run
// out of a resource, usually file descriptors.
const AcceptPause = 50 * time.Millisecond

// Either returns a listener that accepts TLS and plaintext on l, which it then owns. detect
// is the time limit for a connection's first byte.
func Either(l net.Listener, config *tls.Config, detect time.Duration) net.Listener {
	u := &eitherListener{
		Listener: l, config: config, detect: detect, ready: make(chan net.Conn),
		done: make(chan struct{}), waiting: make(map[net.Conn]struct{}),
	}
	u.wg.Go(u.accept)
	return u
}

// accept accepts connections until the listener fails permanently.
func (u *eitherListener) accept() {
	for {
		c, err := u.Listener.Accept()
		if err == nil {
			if u.hold(c) {
				u.wg.Go(func() { u.tell(c) })
			}
			continue
		}
		if te, ok := err.(interface{ Temporary() bool }); ok && te.Temporary() { //nolint:errorlint // as in package http
			select {
			case <-time.After(AcceptPause):
				continue
			case <-u.done:
			}
		}
		u.mu.Lock()
		u.err = err
		u.mu.Unlock()
		u.stop()
		return
	}
}

// hold registers a connection that has sent nothing yet, so that Close ends its wait. After
// Close, hold closes the connection and returns false.
func (u *eitherListener) hold(c net.Conn) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.waiting == nil {
		_ = c.Close()
		return false
	}
	u.waiting[c] = struct{}{}
	return true
}

// tell detects the connection's protocol and hands it to Accept.
func (u *eitherListener) tell(c net.Conn) {
	first := make([]byte, 1)
	_ = c.SetReadDeadline(time.Now().Add(u.detect))
	_, err := c.Read(first)
	_ = c.SetReadDeadline(time.Time{})
	u.mu.Lock()
	delete(u.waiting, c)
	u.mu.Unlock()
	if err != nil {
		_ = c.Close()
		return
	}
	var out net.Conn = &unreadConn{Conn: c, first: first}
	if first[0] == RecordHandshake {
		out = tls.Server(out, u.config)
	}
	select {
	case u.ready <- out:
	case <-u.done:
		_ = c.Close()
	}
}

// Accept implements net.Listener.
func (u *eitherListener) Accept() (net.Conn, error) {
	select {
	case c := <-u.ready:
		return c, nil
	case <-u.done:
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.err != nil {
			return nil, u.err
		}
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. It also closes connections that Accept has not
// returned yet.
func (u *eitherListener) Close() error {
	err := u.Listener.Close()
	u.stop()
	u.wg.Wait()
	return err
}

// stop ends all waits.
func (u *eitherListener) stop() {
	u.once.Do(func() {
		close(u.done)
		u.mu.Lock()
		defer u.mu.Unlock()
		for c := range u.waiting {
			_ = c.Close()
		}
		u.waiting = nil
	})
}

// unreadConn is a connection after its first byte was read. Until the end of the handshake,
// only the goroutine that does the handshake reads.
type unreadConn struct {
	net.Conn
	first []byte
}

// NetConn returns the connection below, like the method of a tls.Conn.
func (c *unreadConn) NetConn() net.Conn { return c.Conn }

func (c *unreadConn) Read(b []byte) (int, error) {
	if len(c.first) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.first)
	c.first = c.first[n:]
	return n, nil
}
