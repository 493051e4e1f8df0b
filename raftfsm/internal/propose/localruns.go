package propose

import (
	"errors"
	"sync"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
)

// Bounds of the queue.
const (
	// MaxBatchOps and MaxBatchBytes bound a run and a batch. A command larger than
	// MaxBatchBytes has its own run and batch.
	MaxBatchOps   = 4096
	MaxBatchBytes = 256 << 10

	// maxLocalBytes limits the bytes that wait to be sent. Above it, Propose blocks.
	maxLocalBytes = 16 << 20
)

// run is a sequence of consecutive commands of this server, encoded after a gap for the
// run's header.
type run struct {
	first  uint64
	count  uint32
	buf    []byte
	opened time.Time // when the first command was added
}

// LocalRuns is the queue of this server's commands. It numbers and encodes them, packs them
// into runs, and keeps their waiters until they are applied.
type LocalRuns struct {
	Server  uint8
	Nonce   uint64
	backlog *Backlog
	// Taken is called for every run that is sent, with the number of its commands, the
	// number of commands that were waiting, and when its first command came. It must not
	// block.
	Taken func(commands, waiting int, since time.Time)

	mu     sync.Mutex
	freed  sync.Cond // signalled when bytes decreases or err is set
	err    error     // set by close
	way    uint64    // incremented when commands are lost
	next   uint64    // number of the next command
	open   *run      // the run being built; nil if it would be empty
	sealed []*run    // full runs, oldest first
	bytes  int       // in open and sealed
	spares spares    // free buffers for the next runs

	// waiting contains the commands not yet applied, sent or not. Their numbers start at
	// next−len(waiting).
	waiting []waiter
	head    int // waiting[:head] is finished

	lost chan struct{} // closed when commands are lost; nil while no goroutine waits for that

	holding bool // the sender waits for commands in flight
}

// waiter is a command that isn't applied yet.
type waiter struct {
	command.Waiter
	session int64
}

// NewLocalRuns returns the queue of a server for one boot. waits counts the queued
// commands.
func NewLocalRuns(server uint8, nonce uint64, waits *Backlog) *LocalRuns {
	q := &LocalRuns{Server: server, Nonce: nonce, backlog: waits, next: 1, way: 1, Taken: func(int, int, time.Time) {}}
	q.freed.L = &q.mu
	return q
}

// Propose queues c. It blocks while more than maxLocalBytes wait, unless own is set.
func (q *LocalRuns) Propose(c *command.Command, own bool) error {
	q.mu.Lock()
	for q.bytes > maxLocalBytes && q.err == nil && !own {
		q.freed.Wait()
	}
	if q.err != nil {
		q.mu.Unlock()
		return q.err
	}
	if c.Way != 0 && c.Way != q.way {
		q.mu.Unlock()
		return ErrLostBefore
	}
	c.Way = q.way
	size := q.add(c)
	q.mu.Unlock()
	q.backlog.add(weight(1, size))
	return nil
}

// Congested reports whether propose would block now.
func (q *LocalRuns) Congested() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes > maxLocalBytes && q.err == nil
}

// ErrClosed is the error of calls after the server was closed.
var ErrClosed = errors.New("the server is closed")

// ErrNoRaft is the error of calls that need the log before this server has one.
var ErrNoRaft = errors.New("the server has not joined its ensemble yet")

// ErrLostBefore refuses a command that must not be applied without the command before it.
var ErrLostBefore = errors.New("a command before this one was lost on its way to the leader")

// add encodes c into the open run and returns its encoded length.
func (q *LocalRuns) add(c *command.Command) int {
	size := c.Size()
	if r := q.open; r != nil && (r.count == MaxBatchOps || len(r.buf)+size > MaxBatchBytes) {
		q.seal()
	}
	r := q.open
	if r == nil {
		r = &run{first: q.next, buf: q.spares.take()[:command.RunHeaderSize], opened: time.Now()}
		q.open = r
	}
	before := len(r.buf)
	r.buf = c.Append(r.buf)
	r.count++
	size = len(r.buf) - before
	q.bytes += size
	q.next++
	if q.head == len(q.waiting) { // empty: reuse the slice from the start
		clear(q.waiting)
		q.waiting, q.head = q.waiting[:0], 0
	}
	q.waiting = append(q.waiting, waiter{c.Waiter, c.Session})
	return size
}

// seal completes the open run.
func (q *LocalRuns) seal() {
	r := q.open
	q.open = nil
	h := command.RunHeader{Server: q.Server, Nonce: q.Nonce, First: r.first, Count: r.count, Size: uint32(len(r.buf) - command.RunHeaderSize)}
	h.Put(r.buf)
	q.sealed = append(q.sealed, r)
}

// Take moves the oldest run from the queue to dst, unless the batch in dst, which has ops
// commands, would become too large. It returns the number of commands added, 0 if no run
// waits or fits.
func (q *LocalRuns) Take(dst []byte, ops int) ([]byte, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.sealed) == 0 {
		if q.open == nil {
			return dst, 0
		}
		q.seal()
	}
	r := q.sealed[0]
	waiting := q.unsent()
	if ops > 0 && (ops+int(r.count) > MaxBatchOps || len(dst)+len(r.buf) > MaxBatchBytes) {
		return dst, 0
	}
	q.sealed[0] = nil
	q.sealed = q.sealed[1:]
	if len(q.sealed) == 0 {
		q.sealed = nil
	}
	q.sent(int(r.count), len(r.buf)-command.RunHeaderSize)
	q.freed.Broadcast()
	dst = append(dst, r.buf...)
	q.spares.put(r.buf)
	q.Taken(int(r.count), waiting, r.opened)
	return dst, int(r.count)
}

// sent subtracts commands that no longer wait to be sent.
func (q *LocalRuns) sent(n, bytes int) {
	q.bytes -= bytes
	q.backlog.taken(weight(n, bytes))
}

// unsent returns how many commands are in open and sealed. The caller holds q.mu.
func (q *LocalRuns) unsent() int {
	switch {
	case len(q.sealed) > 0:
		return int(q.next - q.sealed[0].first)
	case q.open != nil:
		return int(q.next - q.open.first)
	}
	return 0
}

// worth reports whether the waiting commands are worth a message to the leader: no command
// is in flight, or not more than wait here, or the message would be full. This way, a
// single client never waits, and when one entry answers many clients, we don't send a
// message for each of their next requests. If worth returns false, we wake the sender when
// that changes.
func (q *LocalRuns) worth() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	inFlight := len(q.waiting) - q.head - q.unsent()
	ok := q.backlog.reached(min(weight(inFlight, 0), FullWeight))
	q.holding = !ok && inFlight > 0
	return ok
}

// empty reports whether no command waits to be sent.
func (q *LocalRuns) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.open == nil && len(q.sealed) == 0
}

// Applied appends to dst the waiters of the commands numbered first to first+n−1, and
// forgets all commands up to there. Commands that were lost have a nil waiter.
func (q *LocalRuns) Applied(dst []command.Waiter, first uint64, n int) []command.Waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	base := q.next - uint64(len(q.waiting)-q.head)
	for num := first; num < first+uint64(n); num++ {
		for base < num && q.head < len(q.waiting) { // lost before it was applied
			q.drop()
			base++
		}
		if base == num && q.head < len(q.waiting) {
			dst = append(dst, q.waiting[q.head].Waiter)
			q.drop()
			base++
		} else {
			dst = append(dst, nil)
		}
	}
	if q.holding {
		q.holding = false
		q.backlog.poke()
	}
	if q.head > MaxBatchOps && q.head > len(q.waiting)/2 {
		left := copy(q.waiting, q.waiting[q.head:])
		clear(q.waiting[left:])
		q.waiting, q.head = q.waiting[:left], 0
	}
	return dst
}

func (q *LocalRuns) drop() {
	q.waiting[q.head] = waiter{}
	q.head++
}

// Sessions calls f with the session of every command not yet applied.
func (q *LocalRuns) Sessions(f func(session int64)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, w := range q.waiting[q.head:] {
		f(w.session)
	}
}

// Lose forgets all commands not yet applied, sent or not, and reports whether there were
// any. Commands already sent may still be applied.
func (q *LocalRuns) Lose() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	any := q.head < len(q.waiting)
	q.sent(q.unsent(), q.bytes)
	q.way++
	q.waiting, q.head = nil, 0
	q.open, q.sealed = nil, nil
	q.freed.Broadcast()
	if q.lost != nil {
		close(q.lost)
		q.lost = nil
	}
	return any
}

// Losing returns a channel that is closed the next time commands are lost.
func (q *LocalRuns) Losing() <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost == nil {
		q.lost = make(chan struct{})
	}
	return q.lost
}

// Close makes propose fail with err from now on.
func (q *LocalRuns) Close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	q.freed.Broadcast()
}
