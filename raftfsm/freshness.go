package raftfsm

import (
	"time"

	"github.com/zkgo/zkgo/session"
)

// freshness is what a member knows of its contact with the ensemble and of the age of its
// state. session.Member keeps both and decides; these methods give it the facts.
type freshness struct {
	*base
	places    *places
	inquiries *inquiries
	progress  progress
}

// syncLimit is the maximum age of the state of a server that serves.
func (b *base) syncLimit() time.Duration {
	return time.Duration(b.env.cfg.SyncLimit) * b.env.cfg.TickTime
}

// quorumContact returns the newest time at which a quorum followed this server in an
// open leadership, or zero without one.
func (b *base) quorumContact() time.Time {
	l, r, trans := b.leadNow(), b.env.raftNow(), b.transportNow()
	if l == nil || r == nil || trans == nil {
		return time.Time{}
	}
	return trans.Confirmed(l.term, r.GetConfiguration().Configuration(), time.Now())
}

// current returns the liveness with the newest quorum contact of this server as the leader.
func (f *freshness) current() *session.Member {
	if contact := f.quorumContact(); !contact.IsZero() { // before the index is read: see Followed
		f.liveness.Followed(contact, f.env.raftNow().CommitIndex())
	}
	return f.liveness
}

// confirmed implements peers.
func (f *freshness) confirmed() time.Time { return f.current().Contact() }

// confirmedRecently implements peers.
func (f *freshness) confirmedRecently() bool {
	return time.Since(f.quorumContact()) < electionTimeout
}

// fresh implements peers.
func (f *freshness) fresh() time.Time {
	return f.current().Fresh(f.appliedIndex.Load(), time.Now())
}

// tooOld returns why this server's state is too old for reads, or "" if it isn't.
func (f *freshness) tooOld() string {
	return f.current().Stale(f.appliedIndex.Load(), time.Now())
}

// caughtUpWith reports whether this server's state is fresh enough to start serving.
func (f *freshness) caughtUpWith(index uint64) bool {
	return f.current().CaughtUp(index, f.appliedIndex.Load(), time.Now())
}
