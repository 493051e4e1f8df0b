package server

import (
	"math"
	"runtime"
	"sync"
)

// rounds are the goroutines that go from socket to socket and read what has come in: one
// that has a request in every other is not woken for each of them, and a client that
// sends nothing takes no goroutine. A connection whose client sends many requests at a
// time, or long ones, has a goroutine of its own for as long as it does (conn.keep), and
// so has, while it waits, one that has to wait for something (round.leave).
type rounds struct {
	s       *Server
	many    int // goroutines
	begin   sync.Once
	sockets *sockets // nil: there are no rounds

	mu      sync.Mutex
	more    sync.Cond // there is something in todo, or nobody listens
	todo    []*conn   // heard of, and not yet visited
	next    int       // todo[:next] is done with
	listens bool      // one of the goroutines waits for the sockets
	closed  bool
	conns   []*conn // by their ids
	free    []int32 // ids
	heard   []call  // room for who listens
}

// call is what is heard of a socket.
type call struct {
	id   int32
	last bool // the client has hung up: nothing is heard of it again
}

// roundChunk is how many connections a goroutine takes at a time.
const roundChunk = 4

// prepare makes r the rounds of s.
func (r *rounds) prepare(s *Server) { r.s, r.many, r.more.L = s, runtime.GOMAXPROCS(0), &r.mu }

// start starts the goroutines when the first socket comes, where there can be some. A
// server that makes its readers wait for other reasons than their own clients' has none.
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

// stop ends the goroutines.
func (r *rounds) stop() {
	r.mu.Lock()
	r.closed = true
	if r.sockets != nil {
		r.sockets.close()
	}
	r.mu.Unlock()
	r.more.Broadcast()
}

// add has c visited when something comes in. It reports false if that cannot be.
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
	_ = r.sockets.remove(c.raw) // it is closed, or has been added
	r.mu.Lock()
	defer r.mu.Unlock()
	r.release(c)
}

// release gives c's id back; r.mu is held. Who still hears of it visits whoever has it
// next, and finds nothing there.
func (r *rounds) release(c *conn) {
	r.conns[c.id] = nil
	r.free = append(r.free, c.id)
	c.id = noID
}

// noID is the id of a connection that is not visited.
const noID = -1

// round is one of the goroutines.
type round struct {
	*rounds
	room [roundChunk]*conn
	rest []*conn // taken and yet to be visited
	over bool    // another goroutine goes on with the round
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

// take waits for connections to visit. It reports false when there will be no more.
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

// listen waits for the sockets and puts the connections down to be visited; r.mu is held
// and given up meanwhile.
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

// leave has another goroutine go on with the round, since c has to wait for something.
func (d *round) leave() {
	d.over = true
	r := d.rounds
	r.mu.Lock()
	r.todo = append(r.todo, d.rest...)
	r.mu.Unlock()
	d.rest = nil
	r.s.spawn(r.run)
}

// leaveRound lets the others be visited while c waits. The reader calls it before
// anything that takes long, on whatever goroutine it runs.
func (c *conn) leaveRound() {
	if d := c.round; d != nil {
		c.round = nil
		d.leave()
	}
}

// visited is what happens when something was heard of c. Its reader is whoever counts the
// first call, until nobody has called meanwhile.
func (c *conn) visited(d *round) {
	if c.calls.Add(1) == 1 {
		c.visit(d)
	}
}

// call has c visited by a goroutine of its own, if it has none.
func (c *conn) call() {
	if c.calls.Add(1) == 1 {
		c.s.spawn(func() { c.visit(nil) })
	}
}

// visit reads and handles what has come in, on a round or a goroutine of c's own.
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

// hear reads what is there, once unless the client has hung up, and handles it. It
// reports false when the connection ends.
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

// A client that sends many requests at a time, or long ones, has a goroutine of its own
// until it has sent little so many times.
const (
	manyRequests = 8
	busyFor      = 16
)

// needsReader reports whether c is better off with a goroutine of its own.
func (c *conn) needsReader() bool { return c.busy > 0 || c.linear || c.raw == nil }

// keep reads from c on a goroutine of its own, until it is one for the rounds.
func (c *conn) keep() {
	for c.needsReader() || !c.join() {
		if c.fill() != nil || !c.handle() {
			c.finish()
			return
		}
	}
}

// join has c visited from now on. It reports false if that cannot be.
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
