package server

import (
	"syscall"
	"time"
)

// A client that reads slowly is alive although the server hears nothing from it: its
// requests stay in its socket while its reader waits for the client to take a reply. It
// shows life by taking output, and when more of its input arrives.

// A client is closed if it takes less than stallBytes within stallLimit although more
// than that is queued, whatever it sends: otherwise it could hold memory for as long as
// it likes.
const (
	stallBytes = 64 << 10
	stallLimit = 2 * time.Minute
)

// writeChunk is how much is written between two updates of the counters.
const writeChunk = 64 << 10

// writeAll writes b, however long the client takes, and counts the bytes written.
func (q *replyQueue) writeAll(b []byte) error {
	c := q.c
	for len(b) > 0 {
		n, err := c.nc.Write(b[:min(len(b), writeChunk)])
		q.gone(n)
		if err != nil {
			return err
		}
		c.session.last.Store(c.s.clock())
		c.session.heard.Store(true)
		b = b[n:]
	}
	return nil
}

// gone counts n bytes of the current write as written.
func (q *replyQueue) gone(n int) {
	q.mu.Lock()
	q.pushing -= n
	q.sentBytes += int64(n)
	q.mu.Unlock()
	q.c.s.queuedOut.Add(-int64(n))
}

// slowness is what the server knows of a silent or slow client. Only the goroutine that
// tends the connections uses it.
type slowness struct {
	looked bool
	taken  int64 // bytes that the client had taken at the latest check
	inbox  int   // bytes in its socket that the server had not read then
	mark   int64 // taken, when the client last had taken stallBytes more
	since  int64 // clock of mark
}

// look reports whether the client has shown life since the latest check, and whether it
// has stalled. waiting is how many bytes it has yet to take.
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

// lookAtSlow checks a client that is being written to, or that has been silent for half
// of limit, for signs of life. It returns false if it closed the client.
func (c *conn) lookAtSlow(now, limit int64) bool {
	q := &c.replies
	q.mu.Lock()
	writing, written, waiting := q.writing, q.sentBytes, q.pushing
	if q.out != nil {
		waiting += len(q.out.b)
	}
	q.mu.Unlock()
	if !writing && now-c.session.last.Load() < limit/2 {
		q.slow.looked = false
		return true
	}
	unsent, inbox := kernelQueues(c.kernel)
	alive, stalled := q.slow.look(now, written-int64(unsent), inbox, waiting+unsent)
	if stalled {
		c.s.stats.Dropped.Add(1)
		c.s.complaints.Warn(c.s.clock(), "closing a client that hardly takes what waits for it", "client", c.nc.RemoteAddr(), "bytes", waiting+unsent)
		c.kill()
		return false
	}
	if alive {
		c.session.last.Store(now)
		c.session.heard.Store(true)
	}
	return true
}

// kernelOf returns the socket under a connection, nil if there is none.
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
