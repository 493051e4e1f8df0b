package quorum

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// window bounds the unread bytes of a half, like a socket buffer.
const window = 4 << 20

// memConn is one end of a connection of a Memory network.
type memConn struct {
	m             *Memory
	dialed        bool
	local, remote string
	in, out       *half
	laddr, raddr  memAddr
	once          sync.Once
}

func (c *memConn) Read(p []byte) (int, error)  { return c.in.read(p) }
func (c *memConn) Write(p []byte) (int, error) { return c.out.write(p) }

// Close closes both directions. The peer reads the data in transit and then EOF.
func (c *memConn) Close() error {
	c.once.Do(func() {
		c.out.finish()
		c.in.fail(net.ErrClosed)
		c.m.mu.Lock()
		delete(c.m.conns, c)
		c.m.mu.Unlock()
	})
	return nil
}

func (c *memConn) LocalAddr() net.Addr  { return c.laddr }
func (c *memConn) RemoteAddr() net.Addr { return c.raddr }

func (c *memConn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

func (c *memConn) SetReadDeadline(t time.Time) error {
	c.in.update(func() { c.in.readBy = t })
	return nil
}

func (c *memConn) SetWriteDeadline(t time.Time) error {
	c.out.update(func() { c.out.writeBy = t })
	return nil
}

// half is one direction of a connection. It delivers segments in order, none before its
// due time and none after Hold.
type half struct {
	mu       sync.Mutex
	link     linkState
	segments []segment
	size     int
	newest   time.Time // due time of the last segment
	eof      bool      // the writer closed
	lost     bool      // nothing arrives any more
	err      error     // the connection is broken: both sides see it immediately
	readBy   time.Time
	writeBy  time.Time
	changed  chan struct{} // closed and replaced at every change
}

type segment struct {
	data []byte
	size int // of the packet
	due  time.Time
}

// packetOverhead is the size of the IP and TCP headers.
const packetOverhead = 52

func newHalf(l linkState) *half { return &half{link: l, changed: make(chan struct{})} }

func (h *half) update(f func()) {
	h.mu.Lock()
	f()
	close(h.changed)
	h.changed = make(chan struct{})
	h.mu.Unlock()
}

func (h *half) setLink(l linkState) { h.update(func() { h.link = l }) }
func (h *half) finish()             { h.update(func() { h.eof = true }) }

func (h *half) fail(err error) {
	h.update(func() {
		if h.err == nil && (!h.lost || !errors.Is(err, syscall.ECONNRESET)) {
			h.err = err
		}
	})
}

func (h *half) read(p []byte) (int, error) {
	for {
		h.mu.Lock()
		n, wait, err := h.tryRead(p)
		changed := h.changed
		h.mu.Unlock()
		if n > 0 {
			h.update(func() {})
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		sleep(changed, wait)
	}
}

// tryRead returns the maximum time to wait when there is nothing to read now; 0 means
// until something changes.
func (h *half) tryRead(p []byte) (n int, wait time.Duration, err error) {
	now := time.Now()
	switch {
	case h.err != nil:
		return 0, 0, h.err
	case expired(h.readBy, now):
		return 0, 0, os.ErrDeadlineExceeded
	}
	wait = until(h.readBy, now, 0)
	if h.link.held || h.lost || h.link.lose > 0 && len(h.segments) > 0 && h.segments[0].size >= h.link.lose {
		return 0, wait, nil
	}
	if len(h.segments) == 0 {
		if h.eof {
			return 0, 0, io.EOF
		}
		return 0, wait, nil
	}
	s := &h.segments[0]
	if s.due.After(now) {
		return 0, until(s.due, now, wait), nil
	}
	n = copy(p, s.data)
	s.data = s.data[n:]
	h.size -= n
	if len(s.data) == 0 {
		h.segments = h.segments[1:]
	}
	return n, 0, nil
}

func (h *half) write(p []byte) (int, error) {
	for {
		h.mu.Lock()
		now := time.Now()
		var err error
		done := false
		switch {
		case h.err != nil && !h.lost && !h.link.held: // otherwise the reset is lost, too
			err = h.err
		case h.eof:
			err = net.ErrClosed
		case expired(h.writeBy, now):
			err = os.ErrDeadlineExceeded
		case h.size == 0 || h.size+len(p) <= window:
			h.segments = append(h.segments, segment{append([]byte(nil), p...), len(p) + packetOverhead, h.dueAt(now)})
			h.size += len(p)
			done = true
		}
		wait := until(h.writeBy, now, 0)
		changed := h.changed
		h.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if done {
			h.update(func() {})
			return len(p), nil
		}
		sleep(changed, wait)
	}
}

// dueAt returns the time at which data that is sent now arrives.
func (h *half) dueAt(now time.Time) time.Time {
	at := now.Add(h.link.delay)
	if h.link.jitter > 0 {
		at = at.Add(rand.N(h.link.jitter))
	}
	if at.Before(h.newest) {
		at = h.newest
	}
	h.newest = at
	return at
}

func expired(t, now time.Time) bool { return !t.IsZero() && !t.After(now) }

// until returns the time left until t, or other if that is set and shorter.
func until(t, now time.Time, other time.Duration) time.Duration {
	if t.IsZero() {
		return other
	}
	d := t.Sub(now)
	if other > 0 && other < d {
		return other
	}
	return d
}

func sleep(changed <-chan struct{}, wait time.Duration) {
	if wait <= 0 {
		<-changed
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	}
}
