package raftfsm

import (
	"fmt"
	"time"
)

// Freshness is how old the state is that this server's clients read, measured by
// what has been applied.
//
// A mark is a time and an index: everything that any server had acknowledged by
// that time is in the log at or before that index. Once the index is applied
// here, the state is as fresh as the time of the mark.
//
//   - A follower takes its marks from the acknowledgements of its reports: the
//     time is when it sent the report, the index is what the leader had committed
//     when the report came.
//   - A leader takes the newest time at which a quorum followed it, and what is
//     committed when it looks. Its first mark is its leaderStart.
//
// The contact (ensemble.confirmed) says something else: which sessions the leader
// has heard of. Reports are small and get through where entries queue up, so a
// server may be in touch and yet far from fresh.

// mark promises that what was acknowledged by at is in the log up to index.
type mark struct {
	at    time.Time
	index uint64
}

// freshness holds the marks whose index is not applied yet, oldest first. Both
// fields of the marks rise. ensemble.mu guards it.
type freshness struct {
	at      time.Time // the state is at least as fresh as this
	pending []mark
}

// markSteps is the number of marks kept within the bound on a read's age.
const markSteps = 64

// note adds a mark. Marks that are closer together than step share one, whose
// time and index are the newer ones: that may only understate the freshness.
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
// proposed its leaderStart, which is applied now: it was elected before, so no
// other server has acknowledged anything later, and the leaderStart is after all
// that was acknowledged earlier.
func (f *freshness) startAt(proposed time.Time) {
	if proposed.After(f.at) {
		f.at = proposed
		f.pending = nil
	}
}

// reached takes the marks that are applied, and forgets those older than oldest:
// a server whose state is that old serves no reads whatever the mark says.
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

// tooOld is why this server's state is too old to be read, empty if it is not.
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

// caughtUpWith says whether this server's state is fresh enough to begin to
// serve: well within the bound at which it would have to stop again.
func (e *ensemble) caughtUpWith(index uint64) bool {
	return e.appliedIndex.Load() >= index || time.Since(e.fresh()) < e.syncLimit()/4
}
