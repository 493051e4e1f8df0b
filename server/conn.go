package server

import (
	"net"
	"sync/atomic"
	"syscall"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/poller"
	"github.com/zkgo/zkgo/internal/sasl"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/watch"
)

// conn is a client's connection. It has three parts, each with its own owner: the reader
// receives the client's requests, the reply queue sends replies and events to the client,
// and the session knows the client and whether it is alive. conn's own fields don't change
// after the server has accepted the client.
type conn struct {
	s      *Server
	nc     net.Conn
	raw    syscall.RawConn // of a socket, for reads that need no buffer while they wait, and writes that never wait
	try    tryWriter       // of an in-process connection, for the same purpose
	kernel syscall.RawConn // the socket, also below TLS; nil if it isn't one
	host   string          // the client's address without the port
	born   int64           // clock
	secure bool            // accepted by the secure listener

	reader  reader
	replies replyQueue
	session clientSession
}

// newConn returns a connection that nothing reads from yet.
func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{s: s, nc: nc, born: s.clock()}
	c.reader.c, c.replies.c, c.session.c = c, c, c
	c.reader.pollID = poller.NoID
	c.session.linear = s.cfg.LinearizableReads
	c.session.last.Store(c.born)
	return c
}

// kill closes c without sending anything more. It may be called from any goroutine,
// under any lock but the reply queue's, and doesn't block.
func (c *conn) kill() {
	c.replies.mu.Lock()
	done := c.replies.closed
	c.replies.shut()
	c.replies.mu.Unlock()
	if !done {
		c.s.flushers.add(c)
	}
}

// serve starts the reader of a new connection.
func (c *conn) serve() {
	if !c.open() {
		c.finish()
		return
	}
	c.reader.keep()
}

// finish closes c and removes it from every table. The read lock keeps this from
// happening between the steps of a transaction's completion.
func (c *conn) finish() {
	defer c.s.wg.Done()
	if c.reader.pollID != poller.NoID {
		c.s.polling.remove(c)
	}
	t := c.s.tree
	t.RLock()
	c.replies.mu.Lock()
	c.replies.shut()
	c.replies.abandon()
	c.replies.mu.Unlock()
	if w := c.session.watcher.Load(); w != nil {
		c.s.watches.Drop(w)
	}
	t.RUnlock()
	c.s.clients.forget(c)
	c.disconnect() // the output that could be written has been written
	c.reader.release()
}

// tryWriter writes as much as it can without blocking.
type tryWriter interface {
	TryWrite(b []byte) (int, error)
}

// clientSession is the identity of the client, the state of its session, and the times of
// its signs of life. The reader owns the fields that authentication and options set, and any
// goroutine may use the atomic fields. The fields of the attached session change under the
// lock of the reply queue, before the reader is notified and before there is output for the
// session. The reader, the applying goroutine and writers of output read them without the
// lock; other goroutines hold the lock.
type clientSession struct {
	c *conn

	// Set when a session is attached.
	id      int64 // 0: none yet
	gen     uint64
	timeout int32 // milliseconds
	local   bool  // read-only mode: the session belongs to this server alone

	// Used only by the reader.
	linear bool         // reads are linearizable
	sasl   *sasl.Server // nil before the first token

	// ids are the client's identities.
	ids schemes.Set
	// watcher is made by the first watch, with the tree locked, by the goroutine that
	// serves the connection at that time.
	watcher atomic.Pointer[watch.Watcher]
	// heard is set when the client has sent something since the last call of Live.
	heard atomic.Bool
	// last is the clock when the client last sent something.
	last atomic.Int64
	// signs are the clocks when the client was heard from, as Live reported them.
	signs session.Signs
}

// complain logs that the server refuses a request of the client of c.
func (c *conn) complain(msg string, args ...any) {
	c.s.complaints.Warn(c.s.clock(), msg, append([]any{"client", c.nc.RemoteAddr(), "session", sessionID(c.session.id)}, args...)...)
}
