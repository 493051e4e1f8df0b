package server

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
	"github.com/zkgo/zkgo/watch"
)

// conn is a client's connection. One goroutine at a time is its reader: a poller, or a
// goroutine of its own (rounds.go). The fields say what other goroutines may touch.
type conn struct {
	s      *Server
	nc     net.Conn
	raw    syscall.RawConn            // of a socket, for reads that hold no buffer while they wait, and writes that never wait
	try    tryWriter                  // of an in-process connection, for the same purpose
	wake   func(fd uintptr) (ok bool) // method value of readReady, made once
	listen func(fd uintptr)           // method value of readNow
	host   string                     // the client's address without the port
	born   int64                      // clock
	secure bool                       // accepted by the secure listener
	local  bool                       // read-only mode: the session belongs to this server alone

	// Used only by the reader.
	in      *buffer // unparsed input is in.b[parsed:]; nil if there is none
	parsed  int
	readErr error              // of the last readReady or readNow
	silent  bool               // the last readNow found nothing
	round   *round             // the poller that runs the reader; nil: a goroutine of c's own
	id      int32              // among the polled connections
	busy    int                // how many more small batches it takes until c is polled again
	work    *work              // what a batch of requests needs; nil between batches
	ended   bool               // closeSession or a fatal error was read: the rest of the input is ignored
	sasl    *sasl.Server       // nil before the first token
	started int64              // clock: when the bytes being handled arrived
	linear  bool               // reads are linearizable
	current bool               // the server is up to date as of started
	way     uint64             // of the latest command; see raftfsm.Command
	charge  charge             // of the current request
	short   []proto.ID         // the identities that go with each command in full
	prints  []tree.Fingerprint // fingerprints of the other identities, sorted
	over    bool               // a request went into flight above globalOutstandingLimit

	announced bool // the large request that is arriving has been admitted

	// calls counts the wakeups since the reader last began to read. 0: c has no reader,
	// and the goroutine that counts the first wakeup becomes it.
	calls atomic.Int32
	// hungUp is set when c will get no more wakeups.
	hungUp atomic.Bool
	// ids are the client's identities. The slice is immutable; the reader replaces it.
	ids atomic.Pointer[[]proto.ID]
	// heard is set when the client has sent something since the last call of Live.
	heard atomic.Bool
	// last is the clock when the client last sent something.
	last atomic.Int64
	// signs are the clocks when the client was heard from, as Live reported them.
	signs session.Signs
	// barred is set while the reader waits in barrier or for the request throttle.
	barred atomic.Bool
	// waiting counts the queue below. Only the reader adds to it: once the reader has
	// seen 0, it stays 0.
	waiting atomic.Int32

	// The session. It is set while the tree is locked, before the reader is told.
	sid     int64
	gen     uint64
	timeout int32 // milliseconds

	// watcher is made by the first watch, with the tree locked, by the goroutine that
	// serves the connection at that time.
	watcher atomic.Pointer[watch.Watcher]
	// inHeld is the capacity of in while it holds a long request.
	inHeld atomic.Int64
	dirty  bool // c is in fsm.dirty; only the applying goroutine uses it

	kernel syscall.RawConn // the socket, also of a connection with TLS; nil: none
	slow   slowness

	mu        sync.Mutex
	out       *buffer // queued for the client
	writing   bool    // a goroutine is writing what it took from out; no other may write
	head      *pending
	tail      *pending
	held      int           // bytes of requests in the queue
	due       int           // approximate length of the replies to the queued reads
	pushing   int           // bytes taken from out that are being written
	sentBytes int64         // bytes that have been written
	wait      chan struct{} // closed to wake the reader while it waits for the queue or the output to drain
	closed    bool          // nothing more may be queued
	hangUp    bool          // close once out has been written
	counters  connCounters
}

// kill closes c without sending anything more. It may be called from any goroutine,
// under any lock but c.mu, and doesn't block.
func (c *conn) kill() {
	c.mu.Lock()
	done := c.closed
	c.shut()
	c.mu.Unlock()
	if !done {
		c.s.flushers.add(c)
	}
}

// shut makes c refuse all further output; c.mu is held.
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

// wakeReader wakes the reader if it waits; c.mu is held.
func (c *conn) wakeReader() {
	if c.wait != nil {
		close(c.wait)
		c.wait = nil
	}
}

// await blocks the reader until ready returns true. It returns false if the connection
// is closed first. ready is called with c.mu held.
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

// serve starts the reader of a new connection.
func (c *conn) serve() {
	if !c.open() {
		c.finish()
		return
	}
	c.keep()
}

// finish closes c and removes it from every table. The read lock keeps this from
// happening between the steps of a transaction's completion.
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
	c.disconnect() // the output that could be written has been written
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

// tryWriter writes as much as it can without blocking.
type tryWriter interface {
	TryWrite(b []byte) (int, error)
}
