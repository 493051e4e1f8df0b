package raftfsm

import (
	"fmt"
	"time"
)

// Freshness is the age of the applied state, which this server's clients read.
//
// A mark is a time and an index: every write that any server had acknowledged by that
// time is in the log at or before that index. Once this server has applied the index,
// its state is as fresh as the time of the mark.
//
//   - A follower takes its marks from the acknowledgements of its reports. The time is
//     when it sent the report; the index is the leader's commit index when the report
//     arrived.
//   - A leader's mark is the newest time at which a quorum followed it, with its commit
//     index after it has determined that time. Its first mark is its leaderStart.
//
// The contact (ensemble.confirmed) says something else: which sessions the leader has
// heard of. Reports are small and get through even where entries queue up, so a server
// may have recent contact and yet a stale state.

// mark says that every write acknowledged by at is in the log up to index.
type mark struct {
	at    time.Time
	index uint64
}

// freshness holds the marks whose index isn't applied yet, oldest first. at and index
// both increase from mark to mark. ensemble.mu guards it.
type freshness struct {
	at      time.Time // the state is at least as fresh as this
	pending []mark
}

// markSteps is the number of marks kept within the bound on a read's age.
const markSteps = 64

// note adds a mark. If marks are closer together than step, the newer one replaces the
// older. This can only understate the freshness.
func (f *freshness) note(m mark, step time.Duration) {
	n := len(f.pending)
	switch {
	case !m.at.After(f.at) || n > 0 && (!m.at.After(f.pending[n-1].at) || m.index < f.pending[n-1].index):
	case n > 0 && m.index == f.pending[n-1].index,
		n > 1 && m.at.Sub(f.pending[n-2].at) < step:
		f.pending[n-1] = m
	default:
		f.pending = append(f.pending, m)
	}
}

// startAt makes the state as fresh as the time at which this server, as the leader,
// proposed its leaderStart, which it has now applied. Because it was elected before that
// time, no other server has acknowledged a write after it. All writes acknowledged
// earlier are in the log before the leaderStart.
func (f *freshness) startAt(proposed time.Time) {
	if proposed.After(f.at) {
		f.at = proposed
		f.pending = nil
	}
}

// reached removes the marks whose index is applied, and those older than oldest: a server
// with a state that old serves no reads in any case. It returns the freshness.
func (f *freshness) reached(applied uint64, oldest time.Time) time.Time {
	n := 0
	for n < len(f.pending) && (f.pending[n].index <= applied || f.pending[n].at.Before(oldest)) {
		if f.pending[n].index <= applied {
			f.at = f.pending[n].at
		}
		n++
	}
	if n > 0 {
		f.pending = append(f.pending[:0], f.pending[n:]...)
	}
	return f.at
}

// fresh implements others.
func (e *ensemble) fresh() time.Time {
	contact := e.quorumContact() // before the index is read: see mark
	var committed uint64
	if !contact.IsZero() {
		committed = e.n.raftNow().CommitIndex()
	}
	limit := e.syncLimit()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !contact.IsZero() {
		e.freshness.note(mark{contact, committed}, limit/markSteps)
	}
	return e.freshness.reached(e.appliedIndex.Load(), time.Now().Add(-limit))
}

// tooOld returns why this server's state is too old for reads, or "" if it isn't.
func (e *ensemble) tooOld() string {
	limit := e.syncLimit()
	switch {
	case time.Since(e.fresh()) < limit:
		return ""
	case time.Since(e.confirmed()) < limit:
		return fmt.Sprintf("it has not applied what was committed %v ago", limit)
	}
	return fmt.Sprintf("no word from the leader for %v", limit)
}

// caughtUpWith reports whether this server's state is fresh enough to start serving: well
// within the bound at which it would have to stop again.
func (e *ensemble) caughtUpWith(index uint64) bool {
	return e.appliedIndex.Load() >= index || time.Since(e.fresh()) < e.syncLimit()/4
}
