package server

import (
	"runtime"
	"sync"

	"github.com/zkgo/zkgo/internal/poller"
)

// queue appends b to c's output; c.mu is held. If the output would exceed its bound, it
// closes the connection, because the client doesn't read. What is being written doesn't
// count here, so a single reply may have any size.
func (c *conn) queue(b []byte) {
	if c.closed || len(b) == 0 {
		return
	}
	switch {
	case c.out == nil:
		c.out = c.s.bufs.get(len(b))
	case len(c.out.b)+len(b) > c.s.cfg.MaxOutput:
		c.overflow()
		return
	case c.out.shared:
		own := c.s.bufs.get(len(c.out.b) + len(b))
		own.b = append(own.b, c.out.b...)
		c.out = own
	}
	c.out.b = append(c.out.b, b...)
	c.s.countQueued(len(b))
}

// queueBuffer queues a whole buffer. It keeps b as c's output if there is none yet;
// otherwise it copies b and returns it.
func (c *conn) queueBuffer(b *buffer) *buffer {
	if c.out == nil && !c.closed {
		c.out = b
		c.s.countQueued(len(b.b))
		return nil
	}
	c.queue(b.b)
	b.b = b.b[:0]
	return b
}

// queueShared queues a shared buffer. It takes no memory for a client that has no other
// output.
func (c *conn) queueShared(b *buffer) {
	if c.out != nil || c.closed {
		c.queue(b.b)
		return
	}
	c.out = b
	c.s.countQueued(len(b.b))
}

// overflow closes a client that doesn't read; c.mu is held.
func (c *conn) overflow() {
	c.complain("closing a client that does not read its replies")
	c.s.stats.dropped.Add(1)
	c.shut()
	c.s.flushers.add(c)
}

// take returns the output and makes the caller the writer. It returns nil if there is
// no output, or another goroutine is writing.
func (c *conn) take() *buffer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing || c.out == nil {
		return nil
	}
	c.writing = true
	return c.takeMore()
}

// takeMore returns the output, which counts until it has been written; c.mu is held.
func (c *conn) takeMore() *buffer {
	b := c.out
	c.out, c.pushing = nil, len(b.b)
	return b
}

// written ends the write of b. It returns the output queued since, or nil if the caller
// is no longer the writer.
func (c *conn) written(b *buffer, err error) *buffer {
	c.s.bufs.put(b)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.queuedOut.Add(-int64(c.pushing))
	c.sentBytes += int64(c.pushing)
	c.pushing = 0
	if err == nil && c.out != nil {
		return c.takeMore()
	}
	c.writing = false
	if err != nil {
		c.shut()
	}
	if c.hangUp || c.closed {
		c.shut()
		c.s.flushers.add(c)
	}
	c.wakeReader()
	return nil
}

// flush writes the output and may wait for the client. The reader calls it, so the
// server stops reading from a client that doesn't read.
func (c *conn) flush() {
	for b := c.take(); b != nil; {
		err := c.gate()
		if err == nil {
			err = c.writeOut(b.b)
		}
		b = c.written(b, err)
	}
}

// writeOut writes b to the client. A socket first takes as much as it can at once.
func (c *conn) writeOut(b []byte) error {
	if c.raw != nil {
		n, err := c.s.getWork(c).writer.TryWrite(c.raw, b)
		if err != nil || n == len(b) {
			return err
		}
		c.gone(n)
		b = b[n:]
	}
	c.leaveWorker()
	return c.writeAll(b)
}

// flushNow writes what the client takes at once. A new goroutine waits and writes the
// rest.
func (c *conn) flushNow(w *poller.Writer) {
	for b := c.take(); b != nil; {
		n, err := 0, c.gate()
		if err == nil {
			n, err = c.tryWrite(w, b.b)
		}
		if err == nil && n < len(b.b) {
			c.s.spawn(func() { c.drain(b, n) })
			return
		}
		b = c.written(b, err)
	}
}

// tryWrite writes as much of b as the client takes at once and returns how much.
func (c *conn) tryWrite(w *poller.Writer, b []byte) (int, error) {
	switch {
	case c.raw != nil:
		return w.TryWrite(c.raw, b)
	case c.try != nil:
		return c.try.TryWrite(b)
	}
	return 0, nil
}

// drain writes b from n on, and then the output queued in the meantime.
func (c *conn) drain(b *buffer, n int) {
	c.gone(n)
	err := c.writeAll(b.b[n:])
	if b = c.written(b, err); b == nil {
		return
	}
	for b != nil {
		if err = c.gate(); err == nil {
			err = c.writeAll(b.b)
		}
		b = c.written(b, err)
	}
}

// flushers are the goroutines that write what the applying goroutine queued, and that
// close the connections it gave up: closing may wait for the reader.
type flushers struct {
	mu     sync.Mutex
	ready  sync.Cond
	todo   []*conn
	closed bool
}

// maxFlushers bounds the flushers: one core writes some 100,000 times a second.
const maxFlushers = 4

// start starts the flushers.
func (f *flushers) start(s *Server) {
	f.ready.L = &f.mu
	for range min(maxFlushers, runtime.GOMAXPROCS(0)) {
		s.spawn(f.run)
	}
}

// stop ends the flushers when their work is done.
func (f *flushers) stop() {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	f.ready.Broadcast()
}

// add queues connections to be written to, or closed.
func (f *flushers) add(cs ...*conn) {
	f.mu.Lock()
	f.todo = append(f.todo, cs...)
	f.mu.Unlock()
	f.ready.Signal()
	if len(cs) > flushChunk {
		f.ready.Broadcast()
	}
}

// flushChunk is how many connections a flusher takes at a time.
const flushChunk = 16

// next waits for work; an empty result ends the flusher.
func (f *flushers) next(dst []*conn) []*conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.todo) == 0 && !f.closed {
		f.ready.Wait()
	}
	return f.take(dst, flushChunk)
}

// take moves up to most connections from todo to dst; f.mu is held.
func (f *flushers) take(dst []*conn, most int) []*conn {
	n := min(len(f.todo), most)
	dst = append(dst[:0], f.todo[len(f.todo)-n:]...)
	clear(f.todo[len(f.todo)-n:])
	f.todo = f.todo[:len(f.todo)-n]
	return dst
}

// The applying goroutine writes to at most helpMost connections, helpChunk at a time.
const (
	helpMost  = 64
	helpChunk = 4
)

// help does work that the flushers have not begun yet, on the applying goroutine: a
// sleeping flusher arrives when some of it is done, and the next entry has more
// commands once those of this entry are answered. The flushers do the closing.
func (f *flushers) help(w *poller.Writer) {
	var room [helpChunk]*conn
	var closing []*conn
	for left := helpMost; left > 0; left -= helpChunk {
		f.mu.Lock()
		cs := f.take(room[:0], helpChunk)
		f.mu.Unlock()
		if len(cs) == 0 {
			break
		}
		for _, c := range cs {
			if c.flushNow(w); c.isClosed() {
				closing = append(closing, c)
			}
		}
	}
	if len(closing) > 0 {
		f.add(closing...)
	}
}

// run is one flusher.
func (f *flushers) run() {
	w := poller.NewWriter()
	for cs := f.next(nil); len(cs) > 0; cs = f.next(cs) {
		for _, c := range cs {
			if c.flushNow(w); c.isClosed() {
				c.hang()
			}
		}
	}
}

// hang closes the socket of a closed connection. A connection without a socket may
// block until its peer hears of it.
func (c *conn) hang() {
	if c.raw != nil || c.try != nil {
		c.disconnect() // the reader sees it
		c.checkInput()
		return
	}
	c.s.spawn(func() { _ = c.nc.Close() })
}

// disconnect closes the connection. It first tells the client of a socket that nothing
// follows: closing a socket with unread input resets it, and a reset can destroy the
// last reply.
func (c *conn) disconnect() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.nc.Close()
}

// countQueued updates the sum over all connections, and asks for relief above the
// bound.
func (s *Server) countQueued(n int) {
	if s.queuedOut.Add(int64(n)) > int64(s.cfg.MaxOutputTotal) {
		s.askRelief()
	}
}
