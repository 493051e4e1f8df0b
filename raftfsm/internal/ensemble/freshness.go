package ensemble

import (
	"time"

	"github.com/zkgo/zkgo/session"
)

// freshness tracks a member's contact with the ensemble and the age of its state.
// session.Member stores both and makes the decisions; these methods provide the facts.
type freshness struct {
	*base
	places    *places
	inquiries *inquiries
	progress  progress
}

// syncLimit is the maximum age of the state of a server that serves.
func (b *base) syncLimit() time.Duration {
	return time.Duration(b.env.Config.SyncLimit) * b.env.Config.TickTime
}

// quorumContact returns the newest time at which a quorum followed this server in an open
// leadership, or zero if there is none.
func (b *base) quorumContact() time.Time {
	l, r, trans := b.leadNow(), b.env.RaftNow(), b.transportNow()
	if l == nil || r == nil || trans == nil {
		return time.Time{}
	}
	return trans.Confirmed(l.term, r.GetConfiguration().Configuration(), time.Now())
}

// current returns the liveness with the newest quorum contact of this server as the leader.
func (f *freshness) current() *session.Member {
	if contact := f.quorumContact(); !contact.IsZero() { // before the index is read: see Followed
		f.liveness.Followed(contact, f.env.RaftNow().CommitIndex())
	}
	return f.liveness
}

// Confirmed returns the newest time at which a leader that could commit is known to have
// heard of this server's sessions.
func (f *freshness) Confirmed() time.Time { return f.current().Contact() }

// ConfirmedRecently reports whether this leader was in touch with a quorum so recently that no
// other server can be leading.
func (f *freshness) ConfirmedRecently() bool {
	return time.Since(f.quorumContact()) < ElectionTimeout
}

// Fresh returns a time such that this server has applied everything that any server had
// acknowledged by then.
func (f *freshness) Fresh() time.Time {
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
