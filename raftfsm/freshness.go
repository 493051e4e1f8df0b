package raftfsm

import (
	"time"

	"github.com/zkgo/zkgo/session"
)

// What a member knows of its contact with the ensemble and of the age of its state.
// session.Member keeps both and decides; these methods give it the facts.

// syncLimit is the maximum age of the state of a server that serves.
func (e *ensemble) syncLimit() time.Duration {
	return time.Duration(e.env.cfg.SyncLimit) * e.env.cfg.TickTime
}

// quorumContact returns the newest time at which a quorum followed this server in an
// open leadership, or zero without one.
func (e *ensemble) quorumContact() time.Time {
	l, r, trans := e.leadNow(), e.env.raftNow(), e.transportNow()
	if l == nil || r == nil || trans == nil {
		return time.Time{}
	}
	return trans.Confirmed(l.term, r.GetConfiguration().Configuration(), time.Now())
}

// current returns the liveness with the newest quorum contact of this server as the leader.
func (e *ensemble) current() *session.Member {
	if contact := e.quorumContact(); !contact.IsZero() { // before the index is read: see Followed
		e.liveness.Followed(contact, e.env.raftNow().CommitIndex())
	}
	return e.liveness
}

// confirmed implements others.
func (e *ensemble) confirmed() time.Time { return e.current().Contact() }

// confirmedRecently implements others.
func (e *ensemble) confirmedRecently() bool {
	return time.Since(e.quorumContact()) < electionTimeout
}

// fresh implements others.
func (e *ensemble) fresh() time.Time {
	return e.current().Fresh(e.appliedIndex.Load(), time.Now())
}

// tooOld returns why this server's state is too old for reads, or "" if it isn't.
func (e *ensemble) tooOld() string {
	return e.current().Stale(e.appliedIndex.Load(), time.Now())
}

// caughtUpWith reports whether this server's state is fresh enough to start serving.
func (e *ensemble) caughtUpWith(index uint64) bool {
	return e.current().CaughtUp(index, e.appliedIndex.Load(), time.Now())
}
