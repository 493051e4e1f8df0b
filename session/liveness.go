package session

import (
	"sync/atomic"
	"time"
)

// When a session is alive: the rule
//
// A session ends when its client closes it or when the leader expires it. Anything that the
// client sends is a sign of life. So is every moment in which the client waits for its
// server, e.g. for the reply to a request, or until the server reads its input. For a
// session with timeout T:
//
//  1. A member reports the sessions that it has heard from to the leader, at least every
//     half tick and every 500 ms. It repeats each session until the leader has acknowledged
//     a report that names it. The leader acknowledges a report after a quorum has followed
//     it in a contact that started after the report arrived. The acknowledgement carries
//     the commit index as of the arrival. A member's contact is the time at which it sent
//     the newest acknowledged report. Its freshness is the time at which it sent the newest
//     report with a commit index that it has applied. [Member] keeps both.
//  2. The leader expires a session after no report has named it for T, rounded up to a
//     tick, and only while no other server can lead. A new leader starts with a full T
//     for every session, because it can't know what its predecessor heard. Time in
//     which its process was stopped doesn't count. [Deadlines] does this.
//  3. A member sends something to the client only while its freshness is less than 2T/3
//     and less than syncLimit × tickTime old ([Bounds]), and less than 9T/10 has passed
//     since it last heard from the client in a way that the ensemble knows about
//     ([Signs]). Otherwise it closes the connection: before the reply, and on a timer.
//
// As a result, two clients never both learn that they hold the same lock. The leader that
// acknowledged a report sent at time r keeps the session until r + T. So does every later
// leader: a quorum still followed the old one after r, so the new one was elected after
// that, and it starts with a full T. By point 3, no reply is sent after r + T. The bound of
// 2T/3 leaves the client a third of its timeout to find another server, and bounds the age
// of a read. It doesn't imply the bound of 9T/10: a client may have been silent for most of
// T when its server is cut off.
//
// We assume that clocks run at the same speed. They need not show the same time.
//
// The callers only transport facts: which sessions sent something, which reports were
// acknowledged, which index was applied, and which server leads. We make the decisions in
// this package.

// Bounds limits how long a member may continue without its leader.
type Bounds struct {
	Sync time.Duration // syncLimit × tickTime: the maximum age of a state that is read
}

// Reply returns how old the state may be when this server replies to the client of a
// session with that timeout.
func (b Bounds) Reply(timeout time.Duration) time.Duration { return min(timeout*2/3, b.Sync) }

// Welcome returns how old the state may be when a client with that timeout attaches. It is
// stricter than Reply: otherwise the server would soon close the connection again.
func (b Bounds) Welcome(timeout time.Duration) time.Duration { return b.Reply(timeout) * 3 / 4 }

// resume returns how old the state may be when the server starts to serve: well below the
// age at which it would have to stop again.
func (b Bounds) resume() time.Duration { return b.Sync / 4 }

// Signs records when a member heard from one client. Times are nanoseconds on a monotonic
// clock of the caller. Alive may be called at any time, the other methods by one goroutine
// at a time.
type Signs struct {
	reported atomic.Int64 // when the session was last to be reported
	known    atomic.Int64 // the newest such time that the ensemble knows
}

// Attached records that the session was attached by a request that arrived then. Every
// leader that has applied the attach knows it.
func (s *Signs) Attached(arrived int64) {
	s.known.Store(arrived)
	s.reported.Store(arrived)
}

// Reported records that the session will be reported to the leader as alive now.
// contact is the member's newest contact.
func (s *Signs) Reported(now, contact int64) {
	s.known.Store(s.last(contact))
	s.reported.Store(now)
}

// Alive reports whether no leader can have expired the session yet, as far as this client
// is concerned. The caller also checks the age of its state: see [Bounds].
func (s *Signs) Alive(timeout time.Duration, now, contact int64) bool {
	return now-s.last(contact) < int64(timeout-timeout/10)
}

// last returns the newest sign of life that the ensemble knows: no leader ends the
// session within its timeout from then.
func (s *Signs) last(contact int64) int64 {
	if reported := s.reported.Load(); reported <= contact {
		return reported
	}
	return s.known.Load()
}
