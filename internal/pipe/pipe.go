package pipe

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// pipeRoom is how many bytes an in-process connection buffers in each direction before
// its writer blocks.
const room = 256 << 10

// smallRoom is the initial size of a pipe's buffer.
const smallRoom = 4 << 10

// pipe is one direction of an in-process connection.
type pipe struct {
	mu     sync.Mutex
	change sync.Cond
	b      []byte // written and not yet read: b[off:]
	off    int
	closed bool // by either side; buffered bytes can still be read
}

// Conn is one end of an in-process connection. Unlike net.Pipe it buffers, so that
// a write need not wait for its reader. Unlike a socket it blocks only on locks, which
// programs with a simulated clock need.
type Conn struct {
	r, w                *pipe
	name, peer          Addr
	readStop, writeStop deadline
}

// Addr is the address of an end.
type Addr string

// Network implements net.Addr.
func (Addr) Network() string { return "pipe" }

// String implements net.Addr.
func (a Addr) String() string { return string(a) }

// New returns the two ends of a connection.
func New(client, server string) (*Conn, *Conn) {
	up, down := new(pipe), new(pipe)
	up.change.L, down.change.L = &up.mu, &down.mu
	a := &Conn{r: down, w: up, name: Addr(client), peer: Addr(server)}
	b := &Conn{r: up, w: down, name: Addr(server), peer: Addr(client)}
	return a, b
}

// wait blocks until ready returns true; p.mu is held.
func (p *pipe) wait(stop *deadline, ready func() bool) error {
	for !ready() {
		if stop.passed() {
			return os.ErrDeadlineExceeded
		}
		p.change.Wait()
	}
	return nil
}

// readable reports whether a Read would return; p.mu is held.
func (p *pipe) readable() bool { return p.off < len(p.b) || p.closed }

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	p := c.r
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.wait(&c.readStop, p.readable); err != nil {
		return 0, err
	}
	n := copy(b, p.b[p.off:])
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	if p.off += n; p.off == len(p.b) {
		p.b, p.off = p.b[:0], 0
		if cap(p.b) > smallRoom {
			p.b = nil
		}
	}
	p.change.Broadcast()
	return n, nil
}

// WaitRead implements readWaiter.
func (c *Conn) WaitRead() error {
	c.r.mu.Lock()
	defer c.r.mu.Unlock()
	return c.r.wait(&c.readStop, c.r.readable)
}

// TryWrite implements tryWriter.
func (c *Conn) TryWrite(b []byte) (int, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.w.put(b)
}

// put appends as much of b as fits; p.mu is held.
func (p *pipe) put(b []byte) (int, error) {
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	n := min(len(b), room-(len(p.b)-p.off))
	if p.off > 0 && len(p.b)+n > cap(p.b) {
		p.b = append(p.b[:0], p.b[p.off:]...)
		p.off = 0
	}
	p.b = append(p.b, b[:n]...)
	p.change.Broadcast()
	return n, nil
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	p := c.w
	p.mu.Lock()
	defer p.mu.Unlock()
	done := 0
	for done < len(b) {
		err := p.wait(&c.writeStop, func() bool { return p.closed || len(p.b)-p.off < room })
		if err != nil {
			return done, err
		}
		n, err := p.put(b[done:])
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// Close implements net.Conn. The peer can still read data that was written before.
func (c *Conn) Close() error {
	for _, p := range []*pipe{c.r, c.w} {
		p.mu.Lock()
		p.closed = true
		p.change.Broadcast()
		p.mu.Unlock()
	}
	c.readStop.set(c.r, time.Time{})
	c.writeStop.set(c.w, time.Time{})
	return nil
}

// LocalAddr implements net.Conn.
func (c *Conn) LocalAddr() net.Addr { return c.name }

// RemoteAddr implements net.Conn.
func (c *Conn) RemoteAddr() net.Addr { return c.peer }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	c.readStop.set(c.r, t)
	c.writeStop.set(c.w, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.readStop.set(c.r, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeStop.set(c.w, t)
	return nil
}

// deadline ends waits on one pipe; the pipe's mutex guards it.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

// set changes the deadline and wakes the waiting goroutines.
func (d *deadline) set(p *pipe, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(time.Until(at), func() {
			p.mu.Lock()
			p.change.Broadcast()
			p.mu.Unlock()
		})
	}
	p.change.Broadcast()
}

// passed reports whether the deadline has passed; the pipe's mutex is held.
func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }
