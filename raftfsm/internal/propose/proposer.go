package propose

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/tree"
)

// MaxInFlight is the number of entries that the proposer keeps in flight: while one is
// being written, the next one is already full or is being written as well (see worth).
// More entries gain nothing.
const MaxInFlight = 2

// overdueAfter is the time in flight after which a goroutine waits for Raft's answer to
// an entry, which may be a refusal. Raft refuses entries when the leadership ends, which
// the control goroutine learns from Raft, but also during a transfer of the leadership,
// after which this server may still be the leader.
const overdueAfter = 100 * time.Millisecond

// applier is the part of Raft that the proposer needs.
type applier interface {
	Apply(data []byte, timeout time.Duration) raft.ApplyFuture
}

// Proposer packs the runs queued on the leader into batches and hands them to Raft. It
// serves one incarnation. The incarnation is over when Raft refuses or loses a batch,
// because we must not use the batches after it either.
type Proposer struct {
	Raft        applier
	Incarnation uint64
	Policy      tree.Policy
	Full        func() bool // adds tree.Full to policy; nil: never
	Now         func() time.Time
	Claim       func() command.Check // the newest state to compare with
	Keeps       bool                 // readers may look at an entry's data after it was applied
	Sizes       *SizeCounter

	Local   *LocalRuns
	Remote  *RemoteRuns
	Backlog *Backlog

	Failed chan error    // the first error
	Done   chan struct{} // closed when nothing is in flight and nothing more will be
	stop   chan struct{} // closed by halt
	finish chan struct{} // closed by drain

	applied    atomic.Uint64 // seq of the newest entry that the state machine has applied
	unanswered []proposal    // entries that Raft may not have answered yet, oldest first; only run uses it

	mu      sync.Mutex // held during Collect
	halted  bool
	seq     atomic.Uint64 // of the newest entry
	spares  spares        // buffers to build entries in
	fair    fairQueue
	waiting []participant // buffer for fill
}

// proposal is an entry that Raft may not have answered yet.
type proposal struct {
	raft.ApplyFuture
	seq  uint64
	data []byte
}

// Start starts the proposer. background counts its goroutine.
func (p *Proposer) Start(background *sync.WaitGroup) {
	p.Failed = make(chan error, 1)
	p.Done = make(chan struct{})
	p.stop = make(chan struct{})
	p.finish = make(chan struct{})
	background.Go(p.run)
}

// Halt ends the proposer. After it returns, no run leaves a queue.
func (p *Proposer) Halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.halted {
		p.halted = true
		close(p.stop)
	}
}

// Drain makes the proposer send the queued runs and then end; done reports that. It
// must be called at most once.
func (p *Proposer) Drain() { close(p.finish) }

// inFlight returns the number of entries that are proposed and not yet applied.
func (p *Proposer) inFlight() int { return int(p.seq.Load() - p.applied.Load()) }

// NoteApplied records that the state machine has applied an entry. We wake the proposer
// only if the waiting commands are worth an entry now. Otherwise the command that makes
// them worth an entry wakes it.
func (p *Proposer) NoteApplied(seq uint64) {
	p.applied.Store(seq)
	if p.Backlog.reached(enough(p.inFlight())) {
		p.Backlog.poke()
	}
}

// run proposes until it is halted or has drained.
func (p *Proposer) run() {
	defer close(p.Done)
	var late sync.WaitGroup // goroutines that wait for Raft's answers to overdue entries
	defer late.Wait()
	defer func() { p.settle(math.MaxUint64) }()
	defer p.Backlog.poke() // this proposer may have consumed the next proposer's wake-up
	overdue := time.NewTimer(time.Hour)
	defer overdue.Stop()
	finish := p.finish
	// Raft answers the newest applied entry only after the state machine has finished.
	for p.settle(max(p.applied.Load(), 1) - 1) {
		if p.worth(finish == nil) {
			if data := p.Collect(); data != nil {
				p.unanswered = append(p.unanswered, proposal{p.Raft.Apply(data, 0), p.seq.Load(), data})
				overdue.Reset(overdueAfter)
				continue
			}
			if finish == nil {
				return
			}
		}
		if finish == nil {
			late.Wait()
			if len(p.unanswered) > 0 && !p.settle(p.unanswered[0].seq) {
				return
			}
			continue
		}
		select {
		case <-p.Backlog.wake:
		case <-overdue.C:
			overdue := p.unanswered
			p.unanswered = nil
			late.Go(func() { p.await(overdue) })
		case <-finish:
			finish = nil
		case <-p.stop:
			return
		}
	}
}

// worth reports whether to propose the queued runs now. If not, the command that makes them
// worth an entry, or the entry that lands before it, wakes the proposer.
func (p *Proposer) worth(last bool) bool {
	for {
		n := p.inFlight()
		if last && n < MaxInFlight {
			return true
		}
		worth := p.Backlog.reached(enough(n))
		if p.inFlight() == n { // otherwise land may have set another target before
			return worth
		}
	}
}

// enough returns the weight of the commands that are worth an entry while others are in
// flight. If none is, any command is enough. During another entry, the batch must be full.
func enough(inFlight int) int {
	switch {
	case inFlight == 0:
		return 1
	case inFlight < MaxInFlight:
		return FullWeight
	}
	return math.MaxInt
}

// settle waits for Raft's answers to the entries up to seq. For an entry that the state
// machine has applied, the answer is immediate. It returns false if the log refused an
// entry.
func (p *Proposer) settle(seq uint64) bool {
	n := 0
	for n < len(p.unanswered) && p.unanswered[n].seq <= seq {
		n++
	}
	ok := p.await(p.unanswered[:n])
	p.unanswered = append(p.unanswered[:0], p.unanswered[n:]...)
	return ok
}

// await waits for Raft's answers to entries. It returns false, and halts the proposer, if
// the log refused one.
func (p *Proposer) await(proposals []proposal) (ok bool) {
	ok = true
	for _, f := range proposals {
		switch err := f.Error(); {
		case err != nil:
			ok = false
			p.Halt()
			select {
			case p.Failed <- fmt.Errorf("proposing a batch: %w", err):
			default: // only the first error counts
			}
		case !p.Keeps:
			p.reuse(f.data)
		}
	}
	return ok
}

// Collect builds one batch of the queued runs. It returns nil if there are none.
func (p *Proposer) Collect() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halted {
		return nil
	}
	b, ops := p.fill(p.spares.take()[:command.BatchHeaderSize])
	if ops == 0 {
		p.spares.put(b)
		return nil
	}
	h := command.BatchHeader{Incarnation: p.Incarnation, Seq: p.seq.Add(1), Time: p.Now().UnixMilli(), Policy: p.Policy, Check: p.Claim()}
	if p.Full != nil && p.Full() {
		h.Policy |= tree.Full
	}
	h.Append(b[:0])
	p.Sizes.note(len(b), ops)
	if !p.Keeps {
		return b // in use until the entry is applied
	}
	// The log keeps the entry, so it gets its own memory, no larger than the entry.
	p.spares.put(b)
	return append([]byte(nil), b...)
}

// reuse keeps the memory of an entry that is no longer needed, for a later entry.
func (p *Proposer) reuse(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares.put(b)
}

// fill appends runs to b, as many as fit into a batch, and returns the number of their
// commands. Servers take turns.
func (p *Proposer) fill(b []byte) (_ []byte, ops int) {
	for {
		p.waiting = p.Remote.waiting(p.waiting[:0])
		if !p.Local.empty() {
			p.waiting = append(p.waiting, self)
		}
		if len(p.waiting) == 0 {
			return b, ops
		}
		origin := p.fair.next(p.waiting)
		before := len(b)
		var n int
		if origin == self {
			b, n = p.Local.Take(b, ops)
		} else {
			b, n = p.Remote.take(uint8(origin), b, ops)
		}
		if n == 0 && ops > 0 {
			return b, ops // the next batch starts with that run
		}
		p.fair.took(origin, len(b)-before)
		ops += n
	}
}
