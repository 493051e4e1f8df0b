package transport

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/quorum/rpc"
)

// The kernel reports a dead path late. If packets are silently dropped, the connection
// looks idle, TCP keep-alive doesn't run while data is unacknowledged, and retransmissions
// continue for 15 minutes. We therefore set our own deadlines for every stream, in both
// directions, which measure progress instead of time. A large message may need minutes on
// a slow link, as long as bytes move. A request may wait for the other server's disk, as
// long as that server reports that it is working.
//
// On a stream of Raft's RPCs
//
//   - the receiver of a request sends a working byte every fifth of the limit, from
//     the first byte of the request until the response. It expects the rest of the
//     request to move within the limit;
//   - the sender expects the response, or a working byte, within the limit. It also
//     expects the kernel to accept some of the request within the limit, unless working
//     bytes come in;
//   - a connection without a request is closed after idleLimit by the sender, and
//     after twice that by the receiver.
//
// A receiver sends working bytes only if the sender's handshake announced support for
// them. Servers of earlier releases don't understand them.

const (
	// working means that a request is being received or handled. It precedes a response
	// and can't be its first byte: MessagePack never uses it.
	working = 0xc1
	// beatsPerStall is the number of consecutive working bytes that must be missing.
	beatsPerStall = 5
	// idleLimit is the time that an idle connection is kept for later requests.
	idleLimit = 30 * time.Second
)

// stallError reports that a stream to another server made no progress.
type stallError struct {
	Server string
	After  time.Duration
}

// Error implements error.
func (e *stallError) Error() string {
	return fmt.Sprintf("quorum: no progress on a stream to server %s for %v", e.Server, e.After)
}

func timedOut(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// outConn is the sender's end of a stream of Raft's RPCs. It carries one request at a
// time.
type outConn struct {
	*ownedConn
	to    string // the server
	limit time.Duration
	idle  *time.Timer

	heard    atomic.Int64 // time of the last received byte, or of the connection
	open     atomic.Bool  // a request has no response yet
	asked    time.Time    // start of the current request
	received []byte       // received while the request was being written
}

func newOutConn(o *ownedConn, to string, limit time.Duration) *outConn {
	c := &outConn{ownedConn: o, to: to, limit: limit}
	c.heard.Store(time.Now().UnixNano())
	quorum.LimitWrites(o.Conn, limit, c.showsLife)
	c.idle = time.AfterFunc(idleLimit, c.endIdle)
	o.closing = func() { c.idle.Stop() }
	return c
}

// endIdle closes a connection that hasn't been used recently.
func (c *outConn) endIdle() {
	if left := idleLimit - time.Since(time.Unix(0, c.heard.Load())); left > 0 || c.open.Load() {
		c.idle.Reset(max(left, time.Second))
		return
	}
	_ = c.Close()
}

// SetDeadline starts a request. We ignore the network layer's own deadline, because it
// limits the whole request.
func (c *outConn) SetDeadline(time.Time) error {
	c.asked = time.Now()
	c.open.Store(true)
	return nil
}

// SetReadDeadline implements net.Conn and does nothing.
func (c *outConn) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline implements net.Conn and does nothing.
func (c *outConn) SetWriteDeadline(time.Time) error { return nil }

func (c *outConn) Write(p []byte) (int, error) {
	n, err := c.ownedConn.Write(p)
	return n, c.judge(err)
}

// Read returns a response without the working bytes before it.
func (c *outConn) Read(p []byte) (int, error) {
	for {
		n := copy(p, c.received)
		c.received = c.received[n:]
		if n == 0 {
			now := time.Now()
			_ = c.ownedConn.SetReadDeadline(now.Add(c.limit))
			var err error
			if n, err = c.ownedConn.Read(p); err != nil {
				return n, c.judge(err)
			}
			c.heard.Store(now.UnixNano())
		}
		if c.open.Load() {
			skip := 0
			for skip < n && p[skip] == working {
				skip++
			}
			n = copy(p, p[skip:n])
			c.open.Store(n == 0)
		}
		if n > 0 {
			return n, nil
		}
	}
}

// showsLife reports whether anything has come in during a Write that is stuck: the other
// side may be receiving slowly because of its disk.
func (c *outConn) showsLife() bool {
	var b [64]byte
	_ = c.ownedConn.SetReadDeadline(time.Now().Add(time.Millisecond))
	n, _ := c.ownedConn.Read(b[:])
	c.received = append(c.received, b[:n]...)
	return n > 0
}

// judge converts a missed deadline to a stallError, and closes idle connections to the
// same server that may be dead, too.
func (c *outConn) judge(err error) error {
	if !timedOut(err) {
		return err
	}
	quorum.BlamePath(c.Conn)
	c.links.abandon(c.to, c.asked)
	return &stallError{Server: c.to, After: c.limit}
}

// inConn is the receiver's end of a stream of Raft's RPCs.
type inConn struct {
	*ownedConn
	limit time.Duration
	beats bool // the sender understands working bytes

	mu    sync.Mutex // held during a Write
	busy  bool       // a request has begun to arrive and has no response yet
	timer *time.Timer
}

func newInConn(o *ownedConn, limit time.Duration, beats bool) *inConn {
	c := &inConn{ownedConn: o, limit: limit, beats: beats}
	quorum.LimitWrites(o.Conn, limit, nil)
	c.timer = time.AfterFunc(time.Hour, c.beat)
	c.timer.Stop()
	o.closing = func() { c.timer.Stop() }
	return c
}

func (c *inConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	limit := 2 * idleLimit
	if c.busy {
		limit = c.limit
	}
	c.mu.Unlock()
	_ = c.ownedConn.SetReadDeadline(time.Now().Add(limit))
	n, err := c.ownedConn.Read(p)
	if n > 0 {
		c.mu.Lock()
		if !c.busy {
			c.busy = true
			c.timer.Reset(c.limit / beatsPerStall)
		}
		c.mu.Unlock()
	}
	return n, err
}

func (c *inConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	c.timer.Stop()
	return c.ownedConn.Write(p)
}

// beat tells the sender that the request is being worked on.
func (c *inConn) beat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.busy || !c.beats {
		return
	}
	if _, err := c.ownedConn.Write([]byte{working}); err != nil {
		_ = c.Close()
		return
	}
	c.timer.Reset(c.limit / beatsPerStall)
}

// answerConn bounds the answer of a dialled server to one message.
type answerConn struct {
	net.Conn
	left atomic.Int64
}

// maxAnswer bounds an answer: a text and a few numbers.
const maxAnswer = 16 << 10

func (c *answerConn) Write(p []byte) (int, error) {
	c.left.Store(maxAnswer)
	return c.Conn.Write(p)
}

func (c *answerConn) Read(p []byte) (int, error) {
	left := c.left.Load()
	if left <= 0 {
		return 0, fmt.Errorf("%w: an answer of more than %d bytes", rpc.ErrTooLong, maxAnswer)
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), left)])
	c.left.Add(-int64(n))
	return n, err
}
