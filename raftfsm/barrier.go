package raftfsm

import (
	"context"
	"errors"
	"sync"
	"time"
)

// How a server knows that what it has applied is not out of date, without an
// entry in the log. The leader's commit index, read after it was asked, covers
// everything that anybody had been told of by then, provided that it was still
// the leader: which a quorum has to confirm by a contact that began after the
// question came. An answer that was under way before, or lay in the buffers of a
// stopped process, proves nothing. A follower asks with a report of live sessions,
// whose acknowledgement says just that (liveness.go).

// Barrier returns when this server has applied everything that any server had
// acknowledged when it was called. It tries until ctx ends: without a leader it
// waits for one.
func (n *Node) Barrier(ctx context.Context) error { return n.others.barrier(ctx) }

// barrier implements others: what a server alone acknowledges it has applied.
func (alone) barrier(context.Context) error { return nil }

// barrier implements others.
func (e *ensemble) barrier(ctx context.Context) error {
	for ctx.Err() == nil {
		index, err := e.readIndex(ctx)
		if err == nil {
			err = e.awaitApplied(ctx, index)
		}
		if err == nil {
			return nil
		}
		pauseFor(ctx, dialPause)
	}
	return ctx.Err()
}

// readIndex returns an index that covers everything acknowledged before the call.
func (e *ensemble) readIndex(ctx context.Context) (uint64, error) {
	if l := e.leadNow(); l != nil {
		return e.ownIndex(ctx, l)
	}
	one := e.inquiries.add()
	if e.leadNow() != nil { // since a moment ago: nobody carries them now
		giveUp(e.inquiries.take())
	}
	return one.wait(ctx)
}

// busyDisk is how long a write to the log may take before Raft's main loop counts as
// busy with it.
const busyDisk = 50 * time.Millisecond

// heartbeatNow has Raft send heartbeats at once. Raft's main loop takes such requests.
// While it waits for a slow disk they would fill its queue, and a full queue holds up the
// heartbeats themselves: then those that Raft sends at its own pace have to do.
func (e *ensemble) heartbeatNow() {
	if e.hanging() < busyDisk {
		e.n.raftNow().VerifyLeader()
	}
}

// ownIndex is readIndex on the leader. Its leadership is open: an entry of its
// term is committed, and so is what its predecessors committed.
func (e *ensemble) ownIndex(ctx context.Context, l *leading) (uint64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	index, asked := e.n.raftNow().CommitIndex(), e.asked(l)
	e.heartbeatNow()
	if !e.awaitQuorum(ctx, asked) {
		return 0, errNewLeader
	}
	return index, nil
}

// awaitApplied waits until the entry at index is applied here.
func (e *ensemble) awaitApplied(ctx context.Context, index uint64) error {
	for {
		progress := e.progress.wait()
		if e.appliedIndex.Load() >= index {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// progress tells those who wait that something has been applied.
type progress struct {
	mu      sync.Mutex
	changed chan struct{} // nil while nobody waits
}

// wait returns a channel that is closed at the next news.
func (p *progress) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

func (p *progress) news() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// errUnanswered is a question that went down with the connection to the leader,
// or whose leader this server has become.
var errUnanswered = errors.New("the leader did not answer")

// inquiries are what a follower wants to know of its leader: the next report
// carries them.
type inquiries struct {
	mu      sync.Mutex
	waiting []*inquiry
	poke    chan struct{} // capacity 1
}

// inquiry is one of them: an index, or closed without an answer.
type inquiry struct{ answer chan uint64 }

func newInquiries() *inquiries { return &inquiries{poke: make(chan struct{}, 1)} }

// add asks the leader.
func (q *inquiries) add() *inquiry {
	one := &inquiry{answer: make(chan uint64, 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, one)
	q.mu.Unlock()
	select {
	case q.poke <- struct{}{}:
	default:
	}
	return one
}

// wait returns the answer.
func (i *inquiry) wait(ctx context.Context) (uint64, error) {
	select {
	case index, ok := <-i.answer:
		if !ok {
			return 0, errUnanswered
		}
		return index, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// take returns what waits. The caller answers.
func (q *inquiries) take() []*inquiry {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// giveUp lets those who asked ask again.
func giveUp(all []*inquiry) {
	for _, one := range all {
		close(one.answer)
	}
}
