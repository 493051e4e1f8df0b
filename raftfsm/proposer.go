package raftfsm

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tree"
)

// maxInFlight is the number of entries that the proposer keeps in flight: while
// one is being written, the next is full already, or is written as well (worth). More
// gain nothing.
const maxInFlight = 2

// applier is what the proposer needs of Raft.
type applier interface {
	Apply(data []byte, timeout time.Duration) raft.ApplyFuture
}

// proposer packs the runs that wait on the leader into batches and hands them
// to Raft. It serves one incarnation: with the first batch that Raft refuses,
// or loses, the incarnation is over, because the batches behind it must not
// count either.
type proposer struct {
	raft        applier
	incarnation uint64
	policy      tree.Policy
	full        func() bool // adds tree.Full to policy; nil: never
	now         func() time.Time
	claim       func() check         // the newest state to compare with
	keeps       bool                 // the data of an entry may be looked at after it was applied
	together    bool                 // the log writes several entries at the same time
	patience    func() time.Duration // how long those who were just answered are waited for; nil or 0: not at all
	sizes       *proposalSizes

	local   *intake
	remote  *remoteRuns
	backlog *backlog

	failed chan error    // the first error
	done   chan struct{} // closed when nothing is in flight and nothing more will be
	stop   chan struct{} // closed by halt
	finish chan struct{} // closed by drain
	flying chan flight
	landed chan struct{} // an entry is in flight no longer

	inFlight atomic.Int32 // entries

	mu      sync.Mutex // held while runs are taken
	halted  bool
	seq     uint64
	ops     int    // commands of the newest entry
	weights [2]int // about what it and the one before weighed, rather less than more
	spares  spares // to build entries in
	turns   turns
	waiting []turn // room for fill
}

// flight is an entry on its way.
type flight struct {
	raft.ApplyFuture
	data []byte
}

// start sets the proposer to work; its goroutines are counted in background.
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

// halt ends the proposer: when it returns no further run will be taken.
func (p *proposer) halt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.halted {
		p.halted = true
		close(p.stop)
	}
}

// drain lets the proposer send what waits and end then: done says when. It must
// be called once at most.
func (p *proposer) drain() { close(p.finish) }

// run proposes until it is halted or has drained.
func (p *proposer) run() {
	defer p.backlog.poke() // for the next one, whose wake-up this one may have taken
	defer close(p.flying)
	finish := p.finish
	others := newReturners(p.patience, &p.sizes.returning)
	defer others.end()
	for {
		if !others.waits(p.backlog) && p.worth(finish == nil) {
			if data := p.collect(); data != nil {
				if p.inFlight.Add(1) > 1 {
					p.sizes.beside.Add(1)
				}
				p.flying <- flight{p.raft.Apply(data, 0), data}
				continue
			}
			if finish == nil {
				return
			}
		}
		wake := p.backlog.wake
		if p.inFlight.Load() >= maxInFlight {
			wake = nil // nobody needs to tell that more comes
		}
		select {
		case <-wake:
		case <-p.landed:
			if p.inFlight.Load() == 0 {
				others.applied(p.ops, int(p.backlog.marked.Load()))
			}
		case <-others.timer.C:
			others.expired()
		case <-finish:
			finish = nil
			others = newReturners(nil, &p.sizes.returning)
		case <-p.stop:
			return
		}
	}
}

// worth says whether to propose what waits: when nothing is in flight anything
// is worth it, beside another entry only one that is full, or the last ones.
//
// Where the log writes several at a time, as much as the larger of the two newest
// entries held is worth it, too. So neither do a few that write wait for the rest of
// somebody else's entry, nor do many fall apart into entries of one each, which would
// cost more than it gains: those whom one entry answers come back together, and
// share one again.
func (p *proposer) worth(last bool) bool {
	switch n := p.inFlight.Load(); {
	case n >= maxInFlight:
		return false
	case last:
		return true
	case n == 0:
		return p.backlog.reached(1)
	case p.together:
		return p.backlog.reached(min(max(p.weights[0], p.weights[1]), fullWeight))
	}
	return p.backlog.reached(fullWeight)
}

// await reaps the entries in flight in their order. A future whose entry the
// log refused says so; one whose entry was applied says that.
func (p *proposer) await() {
	defer close(p.done)
	for f := range p.flying {
		switch err := f.Error(); {
		case err != nil:
			p.halt()
			select {
			case p.failed <- fmt.Errorf("proposing a batch: %w", err):
			default: // only the first counts
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

// collect builds one batch of what waits, nil when nothing does.
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
	p.ops = ops
	// Half a command less: as many as these are as much, if some are a little shorter.
	p.weights = [2]int{weight(ops, len(b)-batchHeaderSize) - commandWeight/2, p.weights[0]}
	h := batchHeader{incarnation: p.incarnation, seq: p.seq, time: p.now().UnixMilli(), policy: p.policy, check: p.claim()}
	if p.full != nil && p.full() {
		h.policy |= tree.Full
	}
	h.append(b[:0])
	p.sizes.note(len(b), ops)
	if !p.keeps {
		return b // until it was applied
	}
	// The log keeps the entry: it gets memory of its own, no larger than the entry
	// is.
	p.spares.put(b)
	return append([]byte(nil), b...)
}

// reuse takes the memory of an entry that nobody needs any more.
func (p *proposer) reuse(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spares.put(b)
}

// fill appends runs to b, as many as fit into a batch, and returns how many
// commands they hold. Servers take turns.
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
			return b, ops // the next batch begins with it
		}
		p.turns.had(origin, len(b)-before)
		ops += n
	}
}
