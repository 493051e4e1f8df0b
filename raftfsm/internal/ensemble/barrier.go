package ensemble

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// How a server makes sure that its state isn't stale, without an entry in the log. A
// server asks the leader for its commit index. That index covers every write
// acknowledged before the leader got the question, provided that it was still the
// leader. A quorum must confirm this in an exchange that started after the question
// arrived: a reply that was already in flight, or in the buffers of a stopped
// process, proves nothing. A follower sends the question with its report of live
// sessions, and the acknowledgement of the report is the answer (liveness.go).

// Barrier returns when this server has applied everything that any server had acknowledged
// before the call. It retries until ctx ends.
func (f *freshness) Barrier(ctx context.Context) error {
	for ctx.Err() == nil {
		index, err := f.readIndex(ctx)
		if err == nil {
			err = f.awaitApplied(ctx, index)
		}
		if err == nil {
			return nil
		}
		pauseFor(ctx, dialPause)
	}
	return ctx.Err()
}

// readIndex returns an index that covers every write acknowledged before the call.
func (f *freshness) readIndex(ctx context.Context) (uint64, error) {
	if l := f.leadNow(); l != nil {
		return f.ownIndex(ctx, l)
	}
	one := f.inquiries.add()
	if f.leadNow() != nil { // this server has just become leader: no report will carry them
		giveUp(f.inquiries.take())
	}
	return one.wait(ctx)
}

// busyDisk is the duration of a write to the log after which we consider Raft's main loop
// busy.
const busyDisk = 50 * time.Millisecond

// heartbeatNow asks Raft to send heartbeats at once. Raft's main loop handles such
// requests. While it waits for a slow disk, they would fill its queue, and a full queue
// delays the heartbeats themselves. In that case the regular heartbeats have to suffice.
func (b *base) heartbeatNow() {
	if b.hanging() < busyDisk {
		b.env.RaftNow().VerifyLeader()
	}
}

// ownIndex is readIndex on the leader. Its leadership is open, so an entry of its term
// is committed and its commit index covers what earlier leaders committed.
func (f *freshness) ownIndex(ctx context.Context, l *leading) (uint64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	index, asked := f.env.RaftNow().CommitIndex(), f.asked(l)
	f.heartbeatNow()
	if !f.awaitQuorum(ctx, asked) {
		return 0, propose.ErrNewLeader
	}
	return index, nil
}

// awaitApplied waits until this server has applied the entry at index.
func (f *freshness) awaitApplied(ctx context.Context, index uint64) error {
	for {
		progress := f.progress.wait()
		if f.appliedIndex.Load() >= index {
			return nil
		}
		select {
		case <-progress:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// progress tells waiting goroutines that an entry has been applied.
type progress struct {
	mu      sync.Mutex
	changed chan struct{} // nil while no goroutine waits
}

// wait returns a channel that the next call of news closes.
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

// errUnanswered is returned for an inquiry that was lost with the connection to the
// leader, or that was pending when this server became the leader.
var errUnanswered = errors.New("the leader did not answer")

// inquiries are a follower's pending requests for the leader's commit index. The next
// report carries them.
type inquiries struct {
	mu      sync.Mutex
	waiting []*inquiry
	poke    chan struct{} // capacity 1
}

// inquiry is one request. answer receives an index, or is closed if there is no answer.
type inquiry struct{ answer chan uint64 }

func newInquiries() *inquiries { return &inquiries{poke: make(chan struct{}, 1)} }

// add queues an inquiry for the next report.
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

// wait waits for the answer and returns it.
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

// take removes and returns the pending inquiries, for the caller to answer.
func (q *inquiries) take() []*inquiry {
	q.mu.Lock()
	defer q.mu.Unlock()
	all := q.waiting
	q.waiting = nil
	return all
}

// giveUp fails the inquiries, so that their callers ask again.
func giveUp(all []*inquiry) {
	for _, one := range all {
		close(one.answer)
	}
}
