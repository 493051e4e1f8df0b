package server

import (
	"syscall"
	"time"
)

// A client that reads slowly is alive although nothing is heard of it: what it sends waits
// in its socket while its reader waits for the client to take a reply. Its signs of life are
// that it takes something, and that more of what it sends has come in.

// A client that takes less than stallBytes of more than that within stallLimit is closed,
// whatever it sends: it would keep memory for as long as it likes.
const (
	stallBytes = 64 << 10
	stallLimit = 2 * time.Minute
)

// writeChunk is how much is written between two looks at what has become of it.
const writeChunk = 64 << 10

// writeAll writes b, however long the client takes, and counts what has gone.
func (c *conn) writeAll(b []byte) error {
	for len(b) > 0 {
		n, err := c.nc.Write(b[:min(len(b), writeChunk)])
		c.gone(n)
		if err != nil {
			return err
		}
		c.last.Store(c.s.clock())
		c.heard.Store(true)
		b = b[n:]
	}
	return nil
}

// gone counts n bytes of what is being written as written.
func (c *conn) gone(n int) {
	c.mu.Lock()
	c.pushing -= n
	c.sentBytes += int64(n)
	c.mu.Unlock()
	c.s.queuedOut.Add(-int64(n))
}

// slowness is what the server knows of a client that is silent or slow. It belongs to the
// goroutine that looks after the connections.
type slowness struct {
	looked bool
	taken  int64 // bytes that the client has taken, at the latest look
	inbox  int   // bytes that it has sent and that nobody has read, then
	mark   int64 // taken, when it was last seen to have taken stallBytes more
	since  int64 // clock of that
}

// look reports whether the client has given a sign of life since the latest look, and
// whether it has stalled: waiting is how many bytes it has yet to take.
func (p *slowness) look(now, taken int64, inbox, waiting int) (alive, stalled bool) {
	if !p.looked {
		*p = slowness{looked: true, taken: taken, inbox: inbox, mark: taken, since: now}
		return false, false
	}
	alive = taken > p.taken || inbox > p.inbox
	p.taken, p.inbox = taken, inbox
	if taken-p.mark >= stallBytes || waiting < stallBytes {
		p.mark, p.since = taken, now
	}
	return alive, now-p.since > int64(stallLimit)
}

// lookAtSlow looks for signs of life of a client that is written to, or has been silent for
// half of limit. It reports false if it was closed.
func (c *conn) lookAtSlow(now, limit int64) bool {
	c.mu.Lock()
	writing, written, waiting := c.writing, c.sentBytes, c.pushing
	if c.out != nil {
		waiting += len(c.out.b)
	}
	c.mu.Unlock()
	if !writing && now-c.last.Load() < limit/2 {
		c.slow.looked = false
		return true
	}
	unsent, inbox := kernelQueues(c.kernel)
	alive, stalled := c.slow.look(now, written-int64(unsent), inbox, waiting+unsent)
	if stalled {
		c.s.stats.dropped.Add(1)
		c.s.complaints.warn(c.s.clock(), "closing a client that hardly takes what waits for it", "client", c.nc.RemoteAddr(), "bytes", waiting+unsent)
		c.kill()
		return false
	}
	if alive {
		c.last.Store(now)
		c.heard.Store(true)
	}
	return true
}

// kernelOf returns the socket that a connection is made on, nil if it is none.
func kernelOf(nc any) syscall.RawConn {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
