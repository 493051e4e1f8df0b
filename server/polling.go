package server

import (
	"errors"
	"math"
	"runtime"
	"sync"

	"github.com/zkgo/zkgo/internal/poller"
)

// polling reads the input of most sockets: a few workers wait for all sockets, so an idle
// client needs no goroutine, and the server wakes no goroutine for each request. A
// connection has its own goroutine while its client sends many requests at a time, or long
// ones (reader.keep), and while it must wait (worker.leave).
type polling struct {
	s      *Server
	begin  sync.Once
	poller *poller.Poller[*conn] // nil: every connection has its own goroutine
}

// pollChunk is how many connections a worker handles at a time.
const pollChunk = 4

// start starts the workers when the first socket arrives, if the system supports them. A
// server with an Interceptor, a request throttle or an audit log has no workers: these block
// a reader for reasons other than its own client.
func (p *polling) start() {
	s := p.s
	if s.cfg.Env.Interceptor != nil || s.throttle != nil || s.audit != nil {
		return
	}
	var err error
	if p.poller, err = poller.New[*conn](); err != nil {
		s.log.Debug("a goroutine for each connection", "reason", err)
		return
	}
	for range runtime.GOMAXPROCS(0) {
		s.spawn((&worker{polling: p}).run)
	}
}

// stop ends the workers, or keeps them from starting.
func (p *polling) stop() {
	p.begin.Do(func() {})
	if p.poller != nil {
		p.poller.Close()
	}
}

// add makes the workers handle the input of c. It returns false if they can't.
func (p *polling) add(c *conn) bool {
	p.begin.Do(p.start)
	if p.poller == nil {
		return false
	}
	id, err := p.poller.Add(c.raw, c)
	c.reader.pollID = id
	return err == nil
}

// remove undoes add.
func (p *polling) remove(c *conn) {
	p.poller.Remove(c.raw, c.reader.pollID)
	c.reader.pollID = poller.NoID
}

// worker is a goroutine that handles the input of polled connections one after another.
type worker struct {
	*polling
	events [pollChunk]poller.Event[*conn]
	todo   []poller.Event[*conn] // of events: not yet handled
	over   bool                  // another worker has replaced this one
}

func (w *worker) run() {
	for {
		for len(w.todo) > 0 {
			e := w.todo[0]
			w.todo = w.todo[1:]
			if e.HungUp {
				e.Handle.reader.hungUp.Store(true)
			}
			if e.Handle.reader.input(w); w.over {
				return
			}
		}
		n, err := w.poller.Wait(w.events[:])
		if err != nil {
			w.failed(err)
			return
		}
		w.todo = w.events[:n]
	}
}

// failed closes all clients if the poller has failed: it would miss their input.
func (w *worker) failed(err error) {
	if errors.Is(err, poller.ErrClosed) {
		return
	}
	w.s.log.Error("cannot wait for sockets", "error", err)
	w.s.clients.each((*conn).kill)
}

// leave starts another worker in place of w, because the connection that w handles has to
// wait.
func (w *worker) leave() {
	w.over = true
	next := &worker{polling: w.polling}
	next.todo = append(next.events[:0], w.todo...)
	w.todo = nil
	w.s.spawn(next.run)
}

// leaveWorker keeps other connections from waiting with c. The reader calls it before slow
// work; on c's own goroutine it does nothing.
func (r *reader) leaveWorker() {
	if w := r.worker; w != nil {
		r.worker = nil
		w.leave()
	}
}

// input handles an event of c. The goroutine that counts the first call becomes the
// reader, until no call has arrived while it read.
func (r *reader) input(w *worker) {
	if r.calls.Add(1) == 1 {
		r.serveInput(w)
	}
}

// checkInput makes a new goroutine the reader of c, if c has no reader.
func (r *reader) checkInput() {
	if r.calls.Add(1) == 1 {
		r.c.s.spawn(func() { r.serveInput(nil) })
	}
}

// serveInput reads and handles the input of c, on a worker or on c's own goroutine.
func (r *reader) serveInput(w *worker) {
	c := r.c
	for {
		n := r.calls.Load()
		r.worker = w
		ok := r.receive()
		if r.worker == nil {
			w = nil
		}
		r.worker = nil
		if ok && r.needsReader() {
			if w != nil {
				w.leave()
			}
			c.s.polling.remove(c)
			r.keep()
			return
		}
		if !ok {
			c.finish()
			return
		}
		if r.calls.CompareAndSwap(n, 0) {
			return
		}
	}
}

// receive reads the input that has arrived, once unless the client has hung up, and
// handles it. It returns false when the connection ends.
func (r *reader) receive() bool {
	for {
		if err := r.c.raw.Control(r.recvs.now); err != nil {
			return false
		}
		switch r.recvs.err {
		case nil:
		case poller.ErrNoInput:
			r.idle()
			return true
		default:
			return false
		}
		full := len(r.in.B) == cap(r.in.B)
		if !r.handle() {
			return false
		}
		if full {
			r.busy = busyFor
		}
		if r.busy > 0 {
			return true
		}
		if !r.hungUp.Load() {
			r.idle()
			return true
		}
	}
}

// A client that sends many requests at a time, or long ones, gets its own goroutine until it
// has sent busyFor small batches.
const (
	manyRequests = 8
	busyFor      = 16
)

// needsReader reports whether c should have its own goroutine.
func (r *reader) needsReader() bool { return r.busy > 0 || r.c.session.linear || r.c.raw == nil }

// keep reads from c on its own goroutine, until c can return to the workers.
func (r *reader) keep() {
	for r.needsReader() || !r.join() {
		if r.fill() != nil || !r.handle() {
			r.c.finish()
			return
		}
	}
}

// join hands c over to the workers. It returns false if they can't handle it.
func (r *reader) join() bool {
	r.idle()
	n := r.calls.Load()
	if !r.c.s.polling.add(r.c) {
		r.busy = math.MaxInt
		return false
	}
	if !r.calls.CompareAndSwap(n, 0) {
		r.serveInput(nil)
	}
	return true
}
