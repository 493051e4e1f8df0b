package takeover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/learner"
	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/offline/zkfiles"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Target receives the state of an ensemble. It is the group of servers that this one leads.
// raftfsm.Mirroring implements it.
type Target interface {
	State() (mirrored.State, mirrored.Mark, int64)
	Begin(ctx context.Context, t *tree.Tree, s *session.Table) error
	Append(prev int64, txns [][]byte, done func(error)) error
	Mark(mark *mirrored.Mark, done func(error)) error
	Forwards() (list []*mirrored.Forward, more <-chan struct{})
	Heard() []mirrored.Forward
	Sessions() []mirrored.Forward
	End(ctx context.Context, zxid int64) error
	SetPhase(ctx context.Context, to mirrored.Phase) error
	Lost() <-chan struct{}
}

var _ Target = raftfsm.Mirroring{}

const (
	// queueLimit is how many bytes of transactions may wait for the log.
	queueLimit = 256 << 20
	// runLimit is how many bytes of transactions go into the log as one command, unless a
	// single transaction is longer.
	runLimit = 100 << 10
	// markEvery is how often we pass on the ensemble leader's last message to the other servers.
	markEvery = time.Second
)

// errQueue closes a connection that delivers transactions too fast for the log.
var errQueue = errors.New("takeover: the transactions of the ensemble arrive faster than this server can log them")

// feed writes the state and the transactions from one connection to the log. It implements
// learner.Receiver on the connection's goroutine; run is on another one, because the connection
// must be read, and its pings answered, while the log works.
type feed struct {
	to   Target
	addr string // of the ensemble's leader
	from int64  // zxid of the state in the log when the connection began
	wall func() time.Time

	source mirrored.Source // the kind of the ensemble's servers
	// complete is called when the state is exact, and begun when it is in the log.
	complete, begun func()

	// Only the connection's goroutine uses these.
	state *zkfiles.State // that has arrived and isn't exact yet
	based bool           // there is a state that the transactions belong to
	empty bool           // nothing was ever written in its ensemble

	mu       sync.Mutex
	changed  chan struct{}  // has room for one signal to run
	begin    *zkfiles.State // an exact state to begin with
	queue    []item
	queued   int   // bytes in queue
	zxid     int64 // of the newest transaction received
	proposed int64 // by the ensemble's leader, as it said last
	heard    time.Time
	synced   bool
}

// item is a part of the queue for the log: a transaction, or the answer to a request that has none.
type item struct {
	txn    []byte
	zxid   int64 // of txn
	answer *mirrored.Answer
}

func newFeed(to Target, addr string, zxid int64, wall func() time.Time) *feed {
	nothing := func() {}
	return &feed{to: to, addr: addr, from: zxid, zxid: zxid, based: zxid > 0, wall: wall, complete: nothing, begun: nothing, changed: make(chan struct{}, 1)}
}

var _ learner.Receiver = (*feed)(nil)

// Snapshot implements learner.Receiver.
func (f *feed) Snapshot(s *zkfiles.State) error {
	f.state, f.based, f.empty = s, true, false
	f.set(func() { f.zxid = s.Zxid })
	return nil
}

// beginEmpty begins with the state of an ensemble that never had a write. A leader sends no
// snapshot of it.
func (f *feed) beginEmpty(p tree.Policy) { f.state, f.based, f.empty = zkfiles.NewState(p), true, true }

// errNoState closes a connection that delivers transactions without a state.
var errNoState = errors.New("takeover: the ensemble's leader has sent no snapshot, and there is no state here")

// Commit implements learner.Receiver.
func (f *feed) Commit(tx *zkfiles.Txn) error {
	if !f.based || f.empty && uint32(tx.Zxid) != 1 { // an epoch's first transaction has counter 1
		return errNoState
	}
	f.empty = false
	if f.state != nil {
		if err := f.state.Apply(tx); err != nil {
			return fmt.Errorf("takeover: %w", err)
		}
		f.set(func() { f.zxid = tx.Zxid })
		return nil
	}
	f.mu.Lock()
	full := f.queued > queueLimit
	if !full {
		f.queue = append(f.queue, item{txn: tx.Raw, zxid: tx.Zxid})
		f.queued += len(tx.Raw)
		f.zxid = tx.Zxid
	}
	f.mu.Unlock()
	if full {
		return errQueue
	}
	f.signal()
	return nil
}

// Synced implements learner.Receiver.
func (f *feed) Synced() error {
	if !f.based {
		return errNoState
	}
	f.complete()
	f.set(func() { f.begin, f.synced = f.state, true })
	f.state = nil
	f.signal()
	return nil
}

// Ping implements learner.Receiver.
func (f *feed) Ping(proposed int64, at time.Time) error {
	f.set(func() { f.proposed, f.heard = proposed, at })
	f.signal()
	return nil
}

func (f *feed) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *feed) signal() {
	select {
	case f.changed <- struct{}{}:
	default:
	}
}

// take returns the next part of the queue: a state to begin with, a run of transactions with the
// zxid of its last one, or an answer.
func (f *feed) take() (begin *zkfiles.State, run [][]byte, last int64, answer *mirrored.Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if begin = f.begin; begin != nil {
		f.begin = nil
		return begin, nil, 0, nil
	}
	size := 0
	for _, it := range f.queue {
		if it.answer != nil || len(run) > 0 && size+len(it.txn) > runLimit {
			break
		}
		run, last = append(run, it.txn), it.zxid
		size += len(it.txn)
	}
	n := len(run)
	if n == 0 && len(f.queue) > 0 {
		n, answer = 1, f.queue[0].answer
	}
	clear(f.queue[:n])
	if f.queue = f.queue[n:]; len(f.queue) == 0 {
		f.queue = nil
	}
	f.queued -= size
	return nil, run, last, answer
}

// run proposes the queue until ctx ends or a proposal has no effect. It returns when no proposal is
// in flight any more.
func (f *feed) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := f.to.Lost()
	var flying flight
	err := f.pump(ctx, cancel, lost, &flying)
	select {
	case <-flying.landed():
	case <-lost:
	}
	return err
}

// flight counts the proposals without an outcome.
type flight struct {
	mu     sync.Mutex
	n      int
	landCh chan struct{}
}

func (f *flight) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
}

func (f *flight) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n--; f.n == 0 && f.landCh != nil {
		close(f.landCh)
	}
}

// landed returns a channel that is closed when all proposals have an outcome. No proposal may
// begin after that call.
func (f *flight) landed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.landCh = make(chan struct{})
	if f.n == 0 {
		close(f.landCh)
	}
	return f.landCh
}

func (f *feed) pump(ctx context.Context, fail context.CancelCauseFunc, lost <-chan struct{}, flying *flight) error {
	prev := f.from
	marks := time.NewTicker(markEvery)
	defer marks.Stop()
	propose := func(command func(done func(error)) error) error {
		flying.begin()
		err := command(func(err error) {
			flying.end()
			if err != nil {
				fail(err)
			}
		})
		if err != nil {
			flying.end()
		}
		return err
	}
	announced := false // the servers know that we are in sync
	for {
		begin, run, last, answer := f.take()
		var err error
		switch {
		case begin != nil:
			prev = begin.Zxid
			err = f.start(ctx, begin)
			f.begun()
		case len(run) > 0:
			from := prev
			prev = last
			err = propose(func(done func(error)) error { return f.to.Append(from, run, done) })
		case answer != nil:
			mark := f.mark()
			mark.Answer = *answer
			err = propose(func(done func(error)) error { return f.to.Mark(&mark, done) })
		default:
			if mark := f.mark(); mark.InSync && !announced {
				announced = true
				err = propose(func(done func(error)) error { return f.to.Mark(&mark, done) })
				break
			}
			select {
			case <-f.changed:
			case <-marks.C:
				mark := f.mark()
				err = propose(func(done func(error)) error { return f.to.Mark(&mark, done) })
			case <-lost:
				err = errors.New("takeover: this server no longer leads")
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		if err != nil {
			return err
		}
	}
}

// start replaces the servers' state with the ensemble's.
func (f *feed) start(ctx context.Context, s *zkfiles.State) error {
	t, sessions := tree.New(), session.NewTable()
	if err := s.Fill(t, sessions); err != nil {
		return err
	}
	return f.to.Begin(ctx, t, sessions)
}

// mark returns the last message of the ensemble's leader.
func (f *feed) mark() mirrored.Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return mirrored.Mark{Proposed: max(f.proposed, f.zxid), Time: f.wall().UnixMilli(), InSync: f.synced, Leader: f.addr, Source: f.source}
}
