package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/poller"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// reader reads requests from the client, decodes them, and answers or proposes them.
//
// One goroutine at a time is the reader: a worker or the connection's own goroutine
// (polling.go). Only that goroutine uses these fields, except for the atomic ones.
type reader struct {
	c *conn

	// Input (this file).
	in     *buffer.Buffer // unparsed input is in.B[parsed:]; may be nil
	parsed int
	recvs  recvs
	inHeld atomic.Int64 // capacity of in during a long request

	// The goroutine that reads (polling.go).
	worker *worker     // nil: the connection's own goroutine
	pollID poller.ID   // NoID: the connection is not polled
	busy   int         // how many more small batches until it is polled again
	hungUp atomic.Bool // there will be no more wakeups
	// calls counts the wakeups since the reader last began to read. 0: there is no reader,
	// and the goroutine that counts the first wakeup becomes it.
	calls atomic.Int32

	// Requests (readloop.go, writes.go).
	work      *work  // state of a batch of requests; nil between batches
	ended     bool   // closeSession or a fatal error was read: the rest of the input is ignored
	started   int64  // clock: when the bytes being handled arrived; others read it only while the reader waits
	current   bool   // the server is up to date as of started
	way       uint64 // of the latest command; see raftfsm.Command
	charge    charge // of the current request
	announced bool   // the large request that is arriving has been admitted
	over      bool   // a request went into flight above globalOutstandingLimit
}

// recvs are the reads from a socket.
type recvs struct {
	err    error                      // of the last one
	orWait func(fd uintptr) (ok bool) // method value of recvOrWait, made once
	now    func(fd uintptr)           // method value of recv
}

// errFrame reports an invalid length of a request.
var errFrame = errors.New("server: frame length out of range")

// release returns the reader's buffers to their pool.
func (r *reader) release() {
	c := r.c
	c.s.pools.Put(r.in)
	r.in = nil
	r.putWork()
	c.s.discharge(r.charge)
	r.charge = charge{}
}

// unread returns the input that has arrived and is not parsed yet.
func (r *reader) unread() []byte {
	if r.in == nil {
		return nil
	}
	return r.in.B[r.parsed:]
}

// fill reads at least one byte of input. While it waits for a socket, it needs no buffer.
func (r *reader) fill() error {
	if r.c.raw == nil {
		return r.fillPlain()
	}
	if err := r.c.raw.Read(r.recvs.orWait); err != nil {
		return err
	}
	return r.recvs.err
}

// recvOrWait reads from a socket. If there is no input, it releases the buffers and
// returns false; the caller calls it again when there is some.
func (r *reader) recvOrWait(fd uintptr) bool {
	if r.recv(fd); r.recvs.err != poller.ErrNoInput {
		return true
	}
	r.idle()
	return false
}

// recv reads the input that a socket has. It keeps the buffers.
func (r *reader) recv(fd uintptr) {
	r.makeRoom()
	b := r.in.B
	var n int
	n, r.recvs.err = poller.Recv(fd, b[len(b):cap(b)])
	r.in.B = b[:len(b)+n]
}

// fillPlain reads from a connection of unknown type.
func (r *reader) fillPlain() error {
	if w, ok := r.c.nc.(readWaiter); ok && len(r.unread()) == 0 {
		r.idle()
		if err := w.WaitRead(); err != nil {
			return err
		}
	}
	r.makeRoom()
	b := r.in.B
	n, err := r.c.nc.Read(b[len(b):cap(b)])
	r.in.B = b[:len(b)+n]
	if n > 0 {
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// readWaiter waits until there is input.
type readWaiter interface{ WaitRead() error }

// idle returns everything that only a busy connection needs to the pools.
func (r *reader) idle() {
	c := r.c
	r.putWork()
	if len(r.unread()) == 0 {
		c.s.pools.Put(r.in)
		r.in, r.parsed = nil, 0
		if r.inHeld.Load() != 0 {
			r.inHeld.Store(0)
		}
	}
}

// makeRoom makes room for input. The buffer of a long request grows with the bytes that
// have arrived: a length alone must not cost memory.
func (r *reader) makeRoom() {
	c := r.c
	rest := r.unread()
	if len(rest) == 0 && r.in != nil {
		full := len(r.in.B) == cap(r.in.B)
		r.in.B, r.parsed = r.in.B[:0], 0
		if !full || cap(r.in.B) >= buffer.Big {
			return
		}
	}
	room := minRoom
	if len(rest) >= proto.LengthSize {
		missing := proto.LengthSize + int(binary.BigEndian.Uint32(rest)) - len(rest)
		room = max(room, min(missing, 3*len(rest)))
	}
	switch {
	case r.in == nil:
		r.in = c.s.pools.Get(buffer.Mid)
	case cap(r.in.B)-r.parsed < len(rest)+room || len(rest) == 0:
		next := c.s.pools.Get(max(len(rest)+room, buffer.Big))
		next.B = append(next.B, rest...)
		c.s.pools.Put(r.in)
		r.in = next
		r.inHeld.Store(int64(cap(next.B)))
		if c.s.memory != nil {
			c.s.memory.Wrote(cap(next.B))
		}
	case cap(r.in.B)-len(r.in.B) < room:
		r.in.B = append(r.in.B[:0], rest...)
	default:
		return
	}
	r.parsed = 0
}

// minRoom is the least room for a read.
const minRoom = 2 << 10

// next returns the next complete request, a view into the buffer that is valid until
// the next fill. ok is false if the request is not complete.
func (r *reader) next() (frame []byte, ok bool, err error) {
	b := r.unread()
	if len(b) < proto.LengthSize {
		return nil, false, nil
	}
	n := int32(binary.BigEndian.Uint32(b))
	if n < 0 || int(n) > r.c.s.cfg.Limits.JuteMaxBuffer {
		return nil, false, fmt.Errorf("%w: %d", errFrame, n)
	}
	end := proto.LengthSize + int(n)
	if int(n) > r.c.s.large.Above {
		if err := r.admitLarge(int(n), len(b) >= end); err != nil {
			return nil, false, err
		}
	}
	if len(b) < end {
		return nil, false, nil
	}
	r.parsed += end
	return b[proto.LengthSize:end:end], true, nil
}

// work is the state of a reader while it handles a batch of requests. Only busy connections
// have one, from a pool.
type work struct {
	replies *buffer.Buffer // to requests answered here, not yet in the output
	locked  bool           // the reader holds the tree's read lock
	n       int            // requests answered since the lock was acquired
	got     int            // requests read since the last update of the counters
	bytes   int            // of these requests
	done    int            // requests answered here since then
	last    stats.LastRequest
	sizes   stats.ReplySizes
	reads   stats.Tally
	zxid    int64 // in the latest reply
	cmd     raftfsm.Command
	writer  *poller.Writer

	requests *proto.Requests // for the write being examined
}

// getWork returns r's work, and creates it if necessary.
func (r *reader) getWork() *work {
	if r.work == nil {
		w, ok := r.c.s.pools.works.Get().(*work)
		if !ok {
			w = &work{writer: poller.NewWriter(), requests: new(proto.Requests)}
		}
		r.work = w
	}
	return r.work
}

// putWork returns r's work to the pool.
func (r *reader) putWork() {
	w, s := r.work, r.c.s
	if w == nil {
		return
	}
	r.work = nil
	s.pools.Put(w.replies)
	*w = work{reads: w.reads, writer: w.writer, requests: w.requests} // the tally keeps its namespaces
	s.pools.works.Put(w)
}

// pools contain objects that only busy connections need.
type pools struct {
	buffer.Pool
	works    sync.Pool // of *work
	pendings sync.Pool // of *pending
}
