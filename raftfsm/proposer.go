package raftfsm

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tree"
)

// maxInFlight is the number of entries that the proposer keeps in flight: while
// one is being written, the next is full already. More gain nothing.
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
	now         func() time.Time
	claim       func() check // the newest state to compare with
	sizes       *proposalSizes

	local  *intake
	remote *remoteRuns
	wake   <-chan struct{}

	failed chan error    // the first error
	done   chan struct{} // closed when nothing is in flight and nothing more will be
	stop   chan struct{} // closed by halt
	finish chan struct{} // closed by drain
	window chan struct{} // one token per entry in flight
	flying chan raft.ApplyFuture

	mu      sync.Mutex // held while runs are taken
	halted  bool
	seq     uint64
	scratch []byte
}

// start sets the proposer to work; its goroutines are counted in background.
func (p *proposer) start(background *sync.WaitGroup) {
	p.failed = make(chan error, 1)
	p.done = make(chan struct{})
	p.stop = make(chan struct{})
	p.finish = make(chan struct{})
	p.window = make(chan struct{}, maxInFlight)
	p.flying = make(chan raft.ApplyFuture, maxInFlight)
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
	defer p.local.wake() // for the next one, whose wake-up this one may have taken
	defer close(p.flying)
	for {
		select {
		case p.window <- struct{}{}:
		case <-p.stop:
			return
		}
		data := p.collect()
		for data == nil {
			select {
			case <-p.wake:
			case <-p.finish:
				if data = p.collect(); data == nil {
					return
				}
				continue
			case <-p.stop:
				return
			}
			data = p.collect()
		}
		p.flying <- p.raft.Apply(data, 0)
	}
}

// await reaps the entries in flight in their order. A future whose entry the
// log refused says so; one whose entry was applied says that.
func (p *proposer) await() {
	defer close(p.done)
	for f := range p.flying {
		if err := f.Error(); err != nil {
			p.halt()
			select {
			case p.failed <- fmt.Errorf("proposing a batch: %w", err):
			default: // only the first counts
			}
		}
		<-p.window
	}
}

// collect builds one batch of what waits, nil when nothing does.
func (p *proposer) collect() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.halted {
		return nil
	}
	if p.scratch == nil {
		p.scratch = make([]byte, batchHeaderSize, 4096)
	}
	b, ops := p.scratch[:batchHeaderSize], 0
	for {
		var own, others int
		b, own = p.local.take(b, ops)
		b, others = p.remote.take(b, ops+own)
		if own+others == 0 {
			break
		}
		ops += own + others
	}
	if ops == 0 {
		return nil
	}
	p.seq++
	h := batchHeader{incarnation: p.incarnation, seq: p.seq, time: p.now().UnixMilli(), policy: p.policy, check: p.claim()}
	h.append(b[:0])
	p.sizes.note(len(b))
	if cap(b) <= maxSpareBytes {
		p.scratch = b
	}
	// Raft keeps the entry in its cache: it gets memory of its own, no larger
	// than the entry is.
	return append([]byte(nil), b...)
}

// remoteRuns holds the runs that other servers sent to this one, which leads.
type remoteRuns struct {
	wake func()

	mu          sync.Mutex
	room        sync.Cond // bytes went down or the incarnation ended; uses mu
	incarnation uint64    // 0 while nothing is taken
	runs        [][]byte
	bytes       int // in runs
}

func newRemoteRuns(wake func()) *remoteRuns {
	q := &remoteRuns{wake: wake}
	q.room.L = &q.mu
	return q
}

// open lets runs in that were sent to the incarnation.
func (q *remoteRuns) open(incarnation uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.incarnation = incarnation
}

// close drops everything and lets nothing more in.
func (q *remoteRuns) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.incarnation, q.runs, q.bytes = 0, nil, 0
	q.room.Broadcast()
}

// add takes one encoded run that server origin sent to an incarnation of this
// leader. It blocks while too much waits. It does not keep the slice.
func (q *remoteRuns) add(incarnation uint64, origin uint8, encoded []byte) error {
	if err := checkRun(origin, encoded); err != nil {
		return fmt.Errorf("run from server %d: %w", origin, err)
	}
	q.mu.Lock()
	for q.bytes > maxIntakeBytes && q.incarnation == incarnation {
		q.room.Wait()
	}
	if q.incarnation == 0 || q.incarnation != incarnation {
		q.mu.Unlock()
		return errNewLeader
	}
	q.runs = append(q.runs, append([]byte(nil), encoded...))
	q.bytes += len(encoded)
	q.mu.Unlock()
	q.wake()
	return nil
}

// take is like intake.take.
func (q *remoteRuns) take(dst []byte, ops int) ([]byte, int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.runs) == 0 {
		return dst, 0
	}
	var h runHeader
	if _, _, err := h.decode(q.runs[0]); err != nil { // add has checked it
		return dst, 0
	}
	if ops > 0 && (ops+int(h.count) > maxBatchOps || len(dst)+len(q.runs[0]) > maxBatchBytes) {
		return dst, 0
	}
	dst = append(dst, q.runs[0]...)
	q.bytes -= len(q.runs[0])
	q.room.Broadcast()
	q.runs[0] = nil
	q.runs = q.runs[1:]
	return dst, int(h.count)
}

// checkRun says whether every server will be able to take the run apart. One
// that got into the log and cannot be would stop them all.
func checkRun(origin uint8, encoded []byte) error {
	var h runHeader
	b, rest, err := h.decode(encoded)
	switch {
	case err != nil:
		return err
	case len(rest) != 0:
		return fmt.Errorf("%d bytes behind it", len(rest))
	case h.server != origin:
		return fmt.Errorf("it names server %d", h.server)
	}
	var c Command
	for i := range h.count {
		if b, err = c.decode(b); err != nil {
			return fmt.Errorf("command %d of %d: %w", i+1, h.count, err)
		}
	}
	if len(b) != 0 {
		return fmt.Errorf("%d bytes behind its %d commands", len(b), h.count)
	}
	return nil
}
