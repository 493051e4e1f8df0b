package server

import (
	"math"
	"runtime"
	"sync"
)

// rounds are the pollers: goroutines that poll all sockets and read the input of those
// that have some. A poller is not woken for each request of each socket, and an idle
// client takes no goroutine. A connection has a goroutine of its own while its client
// sends many requests at a time, or long ones (conn.keep), and while it has to wait
// (round.leave).
type rounds struct {
	s       *Server
	many    int // number of pollers
	begin   sync.Once
	sockets *sockets // nil: there are no pollers

	mu      sync.Mutex
	more    sync.Cond // signals that todo is not empty, or that no poller listens
	todo    []*conn   // connections with input, not yet visited
	next    int       // todo[:next] has been taken
	listens bool      // a poller is waiting for the sockets
	closed  bool
	conns   []*conn // by id
	free    []int32 // unused ids
	heard   []call  // buffer of the poller that listens
}

// call is an event of a socket.
type call struct {
	id   int32
	last bool // the client has hung up: the socket has no more events
}

// roundChunk is how many connections a poller takes at a time.
const roundChunk = 4

// prepare initializes r as the pollers of s.
func (r *rounds) prepare(s *Server) { r.s, r.many, r.more.L = s, runtime.GOMAXPROCS(0), &r.mu }

// start starts the pollers when the first socket arrives, if the system supports them.
// A server with an Interceptor, a request throttle or an audit log has none: these
// block a reader for reasons other than its own client.
func (r *rounds) start() {
	s := r.s
	if s.cfg.Interceptor != nil || s.throttle != nil || s.audit != nil {
		return
	}
	sockets, err := newSockets()
	if err != nil {
		s.log.Debug("a goroutine for each connection", "reason", err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		sockets.close()
		return
	}
	r.sockets = sockets
	for range r.many {
		s.spawn(r.run)
	}
}

// stop ends the pollers.
func (r *rounds) stop() {
	r.mu.Lock()
	r.closed = true
	if r.sockets != nil {
		r.sockets.close()
	}
	r.mu.Unlock()
	r.more.Broadcast()
}

// add has the pollers visit c when input arrives. It returns false if they can't.
func (r *rounds) add(c *conn) bool {
	r.begin.Do(r.start)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.sockets == nil {
		return false
	}
	id := int32(len(r.conns))
	if n := len(r.free); n > 0 {
		id, r.free = r.free[n-1], r.free[:n-1]
		r.conns[id] = c
	} else {
		r.conns = append(r.conns, c)
	}
	c.id = id
	if err := r.sockets.add(c.raw, id); err != nil {
		r.release(c)
		return false
	}
	return true
}

// remove undoes add.
func (r *rounds) remove(c *conn) {
	_ = r.sockets.remove(c.raw) // the socket is closed, or was added
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(c)
}

// release frees c's id; r.mu is held. A poller that still has an event for the id
// visits the connection that gets the id next, and finds no input.
func (r *rounds) release(c *conn) {
	r.conns[c.id] = nil
	r.free = append(r.free, c.id)
	c.id = noID
}

// noID is the id of a connection without a poller.
const noID = -1

// round is one poller.
type round struct {
	*rounds
	room [roundChunk]*conn
	rest []*conn // taken and not yet visited
	over bool    // another goroutine continues as this poller
}

func (r *rounds) run() {
	d := &round{rounds: r}
	for d.take() {
		for len(d.rest) > 0 {
			c := d.rest[0]
			d.rest = d.rest[1:]
			if c.visited(d); d.over {
				return
			}
		}
	}
}

// take waits for connections to visit. It returns false after stop.
func (d *round) take() bool {
	r := d.rounds
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.next == len(r.todo) {
		switch {
		case r.closed:
			return false
		case r.listens:
			r.more.Wait()
		default:
			r.listen()
		}
	}
	end := min(r.next+roundChunk, len(r.todo))
	d.rest = append(d.room[:0], r.todo[r.next:end]...)
	r.next = end
	return true
}

// listen waits for the sockets and queues the connections with input; r.mu is held, but
// released while it waits.
func (r *rounds) listen() {
	r.listens = true
	r.mu.Unlock()
	heard, err := r.sockets.wait(r.heard[:0])
	r.mu.Lock()
	r.listens, r.heard = false, heard
	if err != nil && !r.closed {
		r.s.log.Error("cannot wait for sockets any more", "error", err)
		r.closed = true
		r.s.spawn(func() { r.s.eachConn((*conn).kill) })
	}
	if r.next == len(r.todo) {
		clear(r.todo)
		r.todo, r.next = r.todo[:0], 0
	}
	for _, h := range heard {
		c := r.conns[h.id]
		if c == nil {
			continue
		}
		if h.last {
			c.hungUp.Store(true)
		}
		r.todo = append(r.todo, c)
	}
	if len(r.todo)-r.next > roundChunk {
		r.more.Signal()
	}
}

// leave starts another goroutine to continue as this poller, because c has to wait.
func (d *round) leave() {
	d.over = true
	r := d.rounds
	r.mu.Lock()
	r.todo = append(r.todo, d.rest...)
	r.mu.Unlock()
	d.rest = nil
	r.s.spawn(r.run)
}

// leaveRound keeps other connections from waiting with c. The reader calls it before
// anything that takes long; on a goroutine of c's own it does nothing.
func (c *conn) leaveRound() {
	if d := c.round; d != nil {
		c.round = nil
		d.leave()
	}
}

// visited handles an event of c. The goroutine that counts the first call becomes the
// reader, until no call has arrived while it read.
func (c *conn) visited(d *round) {
	if c.calls.Add(1) == 1 {
		c.visit(d)
	}
}

// call makes a new goroutine visit c, if c has no reader.
func (c *conn) call() {
	if c.calls.Add(1) == 1 {
		c.s.spawn(func() { c.visit(nil) })
	}
}

// visit reads and handles the input of c, on a poller or on a goroutine of c's own.
func (c *conn) visit(d *round) {
	for {
		n := c.calls.Load()
		c.round = d
		ok := c.hear()
		if c.round == nil {
			d = nil
		}
		c.round = nil
		if ok && c.needsReader() {
			if d != nil {
				d.leave()
			}
			c.s.rounds.remove(c)
			c.keep()
			return
		}
		if !ok {
			c.finish()
			return
		}
		if c.calls.CompareAndSwap(n, 0) {
			return
		}
	}
}

// hear reads the input that has arrived, once unless the client has hung up, and
// handles it. It returns false when the connection ends.
func (c *conn) hear() bool {
	for {
		if c.readErr = nil; c.raw.Control(c.listen) != nil || c.readErr != nil {
			return false
		}
		if c.silent {
			c.idle()
			return true
		}
		full := len(c.in.b) == cap(c.in.b)
		if !c.handle() {
			return false
		}
		if full {
			c.busy = busyFor
		}
		if c.busy > 0 {
			return true
		}
		if !c.hungUp.Load() {
			c.idle()
			return true
		}
	}
}

// A client that sends many requests at a time, or long ones, gets a goroutine of its
// own until it has sent busyFor small batches.
const (
	manyRequests = 8
	busyFor      = 16
)

// needsReader reports whether c should have a goroutine of its own.
func (c *conn) needsReader() bool { return c.busy > 0 || c.linear || c.raw == nil }

// keep reads from c on a goroutine of its own, until a poller can take over.
func (c *conn) keep() {
	for c.needsReader() || !c.join() {
		if c.fill() != nil || !c.handle() {
			c.finish()
			return
		}
	}
}

// join hands c over to the pollers. It returns false if they can't take it.
func (c *conn) join() bool {
	c.idle()
	n := c.calls.Load()
	if !c.s.rounds.add(c) {
		c.busy = math.MaxInt
		return false
	}
	if !c.calls.CompareAndSwap(n, 0) {
		c.visit(nil)
	}
	return true
}
