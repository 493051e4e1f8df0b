package raftfsm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tree"
)

// maxInFlight is the number of entries that the proposer keeps in flight: while one is
// being written, the next one is already full or is being written as well (see worth).
// More entries gain nothing.
const maxInFlight = 2

// applier is the part of Raft that the proposer needs.
type applier interface {
	Apply(data []byte, timeout time.Duration) raft.ApplyFuture
}

// proposer packs the runs queued on the leader into batches and hands them to Raft. It
// serves one incarnation. The incarnation is over when Raft refuses or loses a batch,
// because the batches after it must not count either.
type proposer struct {
	raft        applier
	incarnation uint64
	policy      tree.Policy
	full        func() bool // adds tree.Full to policy; nil: never
	now         func() time.Time
	claim       func() check // the newest state to compare with
	keeps       bool         // readers may look at an entry's data after it was applied
	sizes       *proposalSizes

	local   *intake
	remote  *remoteRuns
	backlog *backlog

	failed chan error    // the first error
	done   chan struct{} // closed when nothing is in flight and nothing more will be
	stop   chan struct{} // closed by halt
	finish chan struct{} // closed by drain
	flying chan flight
	landed chan struct{} // an entry is no longer in flight

	inFlight atomic.Int32 // entries

	mu      sync.Mutex // held while runs are taken
	halted  bool
	seq     uint64
	spares  spares // buffers to build entries in
	turns   turns
	waiting []turn // buffer for fill
}

// flight is an entry in flight.
type flight struct {
	raft.ApplyFuture
	data []byte
}

// start starts the proposer. background counts its goroutines.
func (p *proposer) start(background *sync.WaitGroup) {
	p.failed = make(chan error, 1)
	p.done = make(chan struct{})
	p.stop = make(chan struct{})
	p.finish = make(chan struct{})
	p.flying = make(chan flight, maxInFlight)
	p.landed = make(chan struct{}, 1)
	background.Go(p.run)
	background.Go(p.await)
}

// halt ends the proposer. It takes no further run after halt returns.
func (p *proposer) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.halted {
		p.halted = true
		close(p.stop)
	}
}

// drain makes the proposer send the queued runs and then end; done reports that. It
// must be called at most once.
func (p *proposer) drain() { close(p.finish) }

// run proposes until it is halted or has drained.
func (p *proposer) run() {
	defer p.backlog.poke() // for the next proposer, whose wake-up this one may have consumed
	defer close(p.flying)
	finish := p.finish
	for {
		if p.worth(finish == nil) {
			if data := p.collect(); data != nil {
				p.inFlight.Add(1)
				p.flying <- flight{p.raft.Apply(data, 0), data}
				continue
			}
			if finish == nil {
				return
			}
		}
		wake := p.backlog.wake
		if p.inFlight.Load() >= maxInFlight {
			wake = nil // no wake-up is needed for new runs
		}
		select {
		case <-wake:
		case <-p.landed:
		case <-finish:
			finish = nil
		case <-p.stop:
			return
		}
	}
}

// worth reports whether to propose the queued runs now. If nothing is in flight, any
// run is enough. While another entry is in flight, the batch must be full or the last
// one.
func (p *proposer) worth(last bool) bool {
	switch n := p.inFlight.Load(); {
	case n >= maxInFlight:
		return false
	case last:
		return true
	case n == 0:
		return p.backlog.reached(1)
	}
	return p.backlog.reached(fullWeight)
}

// await waits for the entries in flight, in order. The result of a future tells whether
// the log refused its entry or the entry was applied.
func (p *proposer) await() {
	defer close(p.done)
	for f := range p.flying {
		switch err := f.Error(); {
		case err != nil:
			p.halt()
			select {
			case p.failed <- fmt.Errorf("proposing a batch: %w", err):
			default: // only the first error counts
			}
		case !p.keeps:
			p.reuse(f.data)
		}
		p.inFlight.Add(-1)
		select {
		case p.landed <- struct{}{}:
		default:
		}
	}
}

// collect builds one batch of the queued runs. It returns nil if there are none.
func (p *proposer) collect() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halted {
		return nil
	}
	b, ops := p.fill(p.spares.take()[:batchHeaderSize])
	if ops == 0 {
		p.spares.put(b)
		return nil
	}
	p.seq++
	h := batchHeader{incarnation: p.incarnation, seq: p.seq, time: p.now().UnixMilli(), policy: p.policy, check: p.claim()}
	if p.full != nil && p.full() {
		h.policy |= tree.Full
	}
	h.append(b[:0])
	p.sizes.note(len(b), ops)
	if !p.keeps {
		return b // in use until the entry is applied
	}
	// The log keeps the entry, so it gets its own memory, no larger than the entry.
	p.spares.put(b)
	return append([]byte(nil), b...)
}

// reuse takes back the memory of an entry that is no longer needed.
func (p *proposer) reuse(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares.put(b)
}

// fill appends runs to b, as many as fit into a batch, and returns how many commands
// they hold. Servers take turns.
func (p *proposer) fill(b []byte) (_ []byte, ops int) {
	for {
		p.waiting = p.remote.waiting(p.waiting[:0])
		if !p.local.empty() {
			p.waiting = append(p.waiting, ownTurn)
		}
		if len(p.waiting) == 0 {
			return b, ops
		}
		origin := p.turns.next(p.waiting)
		before := len(b)
		var n int
		if origin == ownTurn {
			b, n = p.local.take(b, ops)
		} else {
			b, n = p.remote.take(uint8(origin), b, ops)
		}
		if n == 0 && ops > 0 {
			return b, ops // the next batch begins with that run
		}
		p.turns.had(origin, len(b)-before)
		ops += n
	}
}
