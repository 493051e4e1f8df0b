package server

import (
	"runtime"
	"sync"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/internal/poller"
)

// queue appends b to the output; q.mu is held. If the output would exceed its bound, it
// closes the connection, because the client doesn't read. Bytes that are being written don't
// count here, so a single reply may have any size.
func (q *replyQueue) queue(b []byte) {
	c := q.c
	if q.closed || len(b) == 0 {
		return
	}
	switch {
	case q.out == nil:
		q.out = c.s.pools.Get(len(b))
	case len(q.out.B)+len(b) > c.s.cfg.Limits.MaxOutput:
		q.overflow()
		return
	case q.out.Shared:
		own := c.s.pools.Get(len(q.out.B) + len(b))
		own.B = append(own.B, q.out.B...)
		q.out = own
	}
	q.out.B = append(q.out.B, b...)
	q.countQueued(len(b))
}

// queueBuffer queues a whole buffer. If there is no output yet, b becomes the output;
// otherwise queueBuffer copies b and returns it.
func (q *replyQueue) queueBuffer(b *buffer.Buffer) *buffer.Buffer {
	if q.out == nil && !q.closed {
		q.out = b
		q.countQueued(len(b.B))
		return nil
	}
	q.queue(b.B)
	b.B = b.B[:0]
	return b
}

// queueShared queues a shared buffer. It uses no memory for a client that has no other
// output.
func (q *replyQueue) queueShared(b *buffer.Buffer) {
	if q.out != nil || q.closed {
		q.queue(b.B)
		return
	}
	q.out = b
	q.countQueued(len(b.B))
}

// overflow closes a client that doesn't read; q.mu is held.
func (q *replyQueue) overflow() {
	c := q.c
	c.complain("closing a client that does not read its replies")
	c.s.stats.Dropped.Add(1)
	q.shut()
	c.s.flushers.add(c)
}

// take returns the output and makes the caller the writer. It returns nil if there is
// no output, or another goroutine is writing.
func (q *replyQueue) take() *buffer.Buffer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.writing || q.out == nil {
		return nil
	}
	q.writing = true
	return q.takeMore()
}

// takeMore returns the output, which counts until it has been written; q.mu is held.
func (q *replyQueue) takeMore() *buffer.Buffer {
	b := q.out
	q.out, q.pushing = nil, len(b.B)
	return b
}

// written ends the write of b. It returns the output queued since, or nil if the caller
// is no longer the writer.
func (q *replyQueue) written(b *buffer.Buffer, err error) *buffer.Buffer {
	c := q.c
	c.s.pools.Put(b)
	q.mu.Lock()
	defer q.mu.Unlock()
	c.s.queuedOut.Add(-int64(q.pushing))
	q.sentBytes += int64(q.pushing)
	q.pushing = 0
	if err == nil && q.out != nil {
		return q.takeMore()
	}
	q.writing = false
	if err != nil {
		q.shut()
	}
	if q.hangUp || q.closed {
		q.shut()
		c.s.flushers.add(c)
	}
	q.wakeReader()
	return nil
}

// flush writes the output and may wait for the client. The reader calls it, so the
// server stops reading from a client that doesn't read.
func (q *replyQueue) flush() {
	for b := q.take(); b != nil; {
		err := q.c.session.gate()
		if err == nil {
			err = q.writeOut(b.B)
		}
		b = q.written(b, err)
	}
}

// writeOut writes b to the client. A socket first gets as much as it accepts immediately.
func (q *replyQueue) writeOut(b []byte) error {
	c := q.c
	if c.raw != nil {
		n, err := c.reader.getWork().writer.TryWrite(c.raw, b)
		if err != nil || n == len(b) {
			return err
		}
		q.gone(n)
		b = b[n:]
	}
	c.reader.leaveWorker()
	return q.writeAll(b)
}

// flushNow writes as much as the client accepts without blocking. A new goroutine waits and writes the
// rest.
func (q *replyQueue) flushNow(w *poller.Writer) {
	c := q.c
	for b := q.take(); b != nil; {
		n, err := 0, c.session.gate()
		if err == nil {
			n, err = c.tryWrite(w, b.B)
		}
		if err == nil && n < len(b.B) {
			c.s.spawn(func() { q.drain(b, n) })
			return
		}
		b = q.written(b, err)
	}
}

// tryWrite writes as much of b as the client accepts immediately and returns how much.
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
func (q *replyQueue) drain(b *buffer.Buffer, n int) {
	q.gone(n)
	err := q.writeAll(b.B[n:])
	if b = q.written(b, err); b == nil {
		return
	}
	for b != nil {
		if err = q.c.session.gate(); err == nil {
			err = q.writeAll(b.B)
		}
		b = q.written(b, err)
	}
}

// flushers are goroutines that write output that the applying goroutine has queued, and
// close connections that it gave up: closing may wait for the reader.
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

// flushChunk is how many connections a flusher handles at a time.
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

// help does work that the flushers have not begun yet, on the applying goroutine: waking a
// flusher takes longer than some of this work, and the next entry has more commands if the
// clients of this entry get their answers first. The flushers do the closing.
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
			if c.replies.flushNow(w); c.replies.isClosed() {
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
			if c.replies.flushNow(w); c.replies.isClosed() {
				c.hang()
			}
		}
	}
}

// hang closes the socket of a closed connection. Closing a connection without a socket may
// block until its peer notices.
func (c *conn) hang() {
	if c.raw != nil || c.try != nil {
		c.disconnect() // the reader sees it
		c.reader.checkInput()
		return
	}
	c.s.spawn(func() { _ = c.nc.Close() })
}

// disconnect closes the connection. If it is a socket, disconnect first signals the end of
// the output: closing a socket with unread input resets it, and a reset can destroy the last
// reply.
func (c *conn) disconnect() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.nc.Close()
}

// countQueued adds n bytes to the sum over all connections, and asks for relief above the
// bound.
func (q *replyQueue) countQueued(n int) {
	s := q.c.s
	if s.queuedOut.Add(int64(n)) > int64(s.cfg.Limits.MaxOutputTotal) {
		s.askRelief()
	}
}

// writeChunk is how much is written between two updates of the counters.
const writeChunk = 64 << 10

// writeAll writes b, however slow the client is, and counts the bytes written.
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
