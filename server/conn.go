package server

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// conn is one client's connection. One goroutine at a time is its reader: one that makes
// the rounds, or one of its own (rounds.go). What the others may touch is said at the
// fields.
type conn struct {
	s      *Server
	nc     net.Conn
	raw    syscall.RawConn            // of a socket: reads that hold no buffer while they wait, writes that never wait
	try    tryWriter                  // of an in-process connection, to the same end
	wake   func(fd uintptr) (ok bool) // the method value of readReady, made once
	listen func(fd uintptr)           // that of readNow
	host   string                     // the client's address without the port
	born   int64                      // clock
	secure bool                       // came in by the secure listener
	local  bool                       // read-only mode: the session is this server's own

	// The reader's own.
	in      *buffer // read, from in.b[parsed:]; nil while there is nothing
	parsed  int
	readErr error              // of the last readReady or readNow
	silent  bool               // the last readNow found nothing
	round   *round             // on which the reader is; nil: on a goroutine of c's own
	id      int32              // among those that are visited
	busy    int                // how often little is to come before c is visited again
	work    *work              // what handling a batch of requests needs; nil between batches
	ended   bool               // closeSession or a fatal error was read: what follows is not looked at
	sasl    *sasl.Server       // nil before the first token
	started int64              // clock: when the bytes being handled arrived
	linear  bool               // reads are linearizable
	current bool               // the server is up to date as of started
	way     uint64             // of the latest command, see raftfsm.Command
	charge  charge             // of the request that is being looked at
	short   []proto.ID         // the identities that go with each command as they are
	prints  []tree.Fingerprint // of the others, sorted
	over    bool               // a request went into flight above globalOutstandingLimit

	announced bool // the large request that is arriving has been let in

	// calls counts what has been heard of c since its reader last began to read. 0: it has
	// none, and who counts the first is it.
	calls atomic.Int32
	// hungUp says that nothing more will be heard of c.
	hungUp atomic.Bool
	// ids are the client's identities: replaced, never changed, by the reader.
	ids atomic.Pointer[[]proto.ID]
	// heard says that the client has sent something since Live last asked.
	heard atomic.Bool
	// last is the clock at which the client last sent something.
	last atomic.Int64
	// reported is the clock at which Live last named the session, known the newest
	// such time that the ensemble is known to have heard of.
	reported, known atomic.Int64
	// barred says that the reader waits in barrier.
	barred atomic.Bool
	// waiting counts the queue below. Only the reader adds to it: once it has
	// seen 0, 0 it stays.
	waiting atomic.Int32

	// The session: set while the tree is locked, before the reader is told.
	sid     int64
	gen     uint64
	timeout int32 // milliseconds

	// watcher is made by the first watch, with the tree locked, by the one goroutine that
	// serves the connection then.
	watcher atomic.Pointer[watch.Watcher]
	// inHeld is the capacity of in, of a long request.
	inHeld atomic.Int64
	dirty  bool // is in fsm.dirty; the applying goroutine's own

	kernel syscall.RawConn // the socket, of a connection with TLS too; nil: there is none
	slow   slowness

	mu        sync.Mutex
	out       *buffer // queued for the client
	writing   bool    // somebody writes what was taken from out: the only one who may
	head      *pending
	tail      *pending
	held      int           // bytes of requests in the queue
	due       int           // about how long the replies to the reads in the queue will be
	pushing   int           // bytes taken from out that are being written
	sentBytes int64         // bytes that have been written
	wait      chan struct{} // closed to wake the reader, which waits for the queue or the output to drain
	closed    bool          // nothing may be queued any more
	hangUp    bool          // close once out has been written
	counters  connCounters
}

// kill closes c without another word. It is safe from any goroutine, under any
// lock but c.mu, and does not wait.
func (c *conn) kill() {
	c.mu.Lock()
	done := c.closed
	c.shut()
	c.mu.Unlock()
	if !done {
		c.s.flushers.add(c)
	}
}

// shut makes c refuse everything; c.mu is held.
func (c *conn) shut() {
	c.closed = true
	if c.out != nil {
		c.s.queuedOut.Add(-int64(len(c.out.b)))
		c.s.bufs.put(c.out)
		c.out = nil
	}
	c.wakeReader()
}

func (c *conn) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// wakeReader ends a wait of the reader; c.mu is held.
func (c *conn) wakeReader() {
	if c.wait != nil {
		close(c.wait)
		c.wait = nil
	}
}

// await blocks the reader until ready says so or the connection is closed,
// which it reports as false. ready is called with c.mu held.
func (c *conn) await(ready func() bool) bool {
	c.mu.Lock()
	for !c.closed && !ready() {
		if c.wait == nil {
			c.wait = make(chan struct{})
		}
		wait := c.wait
		c.mu.Unlock()
		c.leaveRound()
		<-wait
		c.mu.Lock()
	}
	ok := !c.closed
	c.mu.Unlock()
	return ok
}

// serve is the reader of a new connection.
func (c *conn) serve() {
	if !c.open() {
		c.finish()
		return
	}
	c.keep()
}

// finish ends c for good: it leaves every table it is in. The read lock keeps
// it from happening between the steps of a transaction's completion.
func (c *conn) finish() {
	defer c.s.wg.Done()
	if c.id != noID {
		c.s.rounds.remove(c)
	}
	t := c.s.tree
	t.RLock()
	c.mu.Lock()
	c.shut()
	c.abandon()
	c.mu.Unlock()
	if w := c.watcher.Load(); w != nil {
		c.s.watches.Drop(w)
	}
	t.RUnlock()
	c.s.forget(c)
	c.disconnect() // all that could be written has been
	c.release()
}

// release gives the reader's buffers back.
func (c *conn) release() {
	c.s.bufs.put(c.in)
	c.in = nil
	c.s.putWork(c)
	c.s.discharge(c.charge)
	c.charge = charge{}
}

// tryWriter writes what can be written without waiting.
type tryWriter interface {
	TryWrite(b []byte) (int, error)
}
