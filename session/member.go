package session

import (
	"fmt"
	"sync"
	"time"
)

// Member implements a member's part of the rule in liveness.go: which sessions it has to
// report, its contact, and its freshness. It is safe for concurrent use.
//
// Contact and freshness answer different questions. The contact tells which sessions the
// leader has heard of; the freshness tells how old the state is that clients read here.
// We need both: reports are small and get through even where entries queue up, so a server
// may have recent contact and stale state at the same time.
type Member struct {
	bounds Bounds

	mu        sync.Mutex
	contact   time.Time // the newest time at which a leader that could commit heard of this server's sessions
	freshness freshness
	unacked   map[int64]struct{} // sessions heard from since a leader last acknowledged a report
	ledAt     time.Time          // when this server, as leader, last added sessions to unacked
	held      map[int64]int      // sessions that are alive although nothing is heard from them
}

// NewMember returns a Member without contact.
func NewMember(b Bounds) *Member {
	return &Member{bounds: b, unacked: make(map[int64]struct{}), held: make(map[int64]int)}
}

// Hold makes a session count as alive until Release has been called as often as Hold.
func (m *Member) Hold(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held[id]++
}

// Release undoes one call of Hold.
func (m *Member) Release(id int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held[id]--; m.held[id] == 0 {
		delete(m.held, id)
	}
}

// Held appends the sessions that Hold keeps alive.
func (m *Member) Held(dst []int64) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.held {
		dst = append(dst, id)
	}
	return dst
}

// Report adds the sessions that this server heard from to the sessions of earlier reports
// that no leader has acknowledged. It returns the union, reusing the memory of heard.
func (m *Member) Report(heard []int64) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(heard)
	heard = heard[:0]
	for id := range m.unacked {
		heard = append(heard, id)
	}
	return heard
}

// Led records sessions that this server heard from as the leader. If it turns out not to
// lead any more, it reports them to the next leader. contact is the newest time at which a
// quorum followed it: no later leader needs to hear of sessions noted before.
func (m *Member) Led(heard []int64, contact, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if contact.After(m.ledAt) {
		clear(m.unacked)
	}
	m.note(heard)
	m.ledAt = now
}

func (m *Member) note(heard []int64) {
	for _, id := range heard {
		m.unacked[id] = struct{}{}
	}
}

// Acknowledged records that the leader has acknowledged the report that was sent at a time,
// and the index that was committed when it arrived. newest means that no later report is in
// flight.
func (m *Member) Acknowledged(sent time.Time, committed uint64, newest bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proved(sent, committed)
	if newest {
		clear(m.unacked)
	}
}

// Followed records the newest time at which a quorum followed this server as the leader,
// and its commit index. The caller reads the index after the time.
func (m *Member) Followed(at time.Time, committed uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.proved(at, committed)
}

func (m *Member) proved(at time.Time, committed uint64) {
	if at.After(m.contact) {
		m.contact = at
	}
	m.freshness.note(mark{at, committed}, m.bounds.Sync/markSteps)
}

// Opened makes the state as fresh as the time at which this server, as the leader, proposed
// the first entry of its leadership, which it has now applied. It was elected before that
// time, so no other server has acknowledged a write after it. All writes acknowledged
// earlier are in the log before that entry.
func (m *Member) Opened(proposed time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.freshness.startAt(proposed)
}

// Contact returns the newest time at which a leader that could commit is known to have
// heard of this server's sessions.
func (m *Member) Contact() time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.contact
}

// Fresh returns a time such that this server, having applied that index, has applied
// everything that any server had acknowledged by then.
func (m *Member) Fresh(applied uint64, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.freshness.reached(applied, now.Add(-m.bounds.Sync))
}

// Stale returns why this server's state is too old for reads, or "" if it isn't.
func (m *Member) Stale(applied uint64, now time.Time) string {
	switch limit := m.bounds.Sync; {
	case now.Sub(m.Fresh(applied, now)) < limit:
		return ""
	case now.Sub(m.Contact()) < limit:
		return fmt.Sprintf("it has not applied what was committed %v ago", limit)
	default:
		return fmt.Sprintf("no word from the leader for %v", limit)
	}
}

// CaughtUp reports whether this server may start to serve: it has applied the index that
// an acknowledgement gave, or its state is fresh enough anyway.
func (m *Member) CaughtUp(index, applied uint64, now time.Time) bool {
	return applied >= index || now.Sub(m.Fresh(applied, now)) < m.bounds.resume()
}

// A mark means that the log up to index contains every write that any server had
// acknowledged by the time at. Once this server has applied the index, its state is as
// fresh as the mark.
//
//   - A follower gets its marks from the acknowledgements of its reports. The time is
//     when it sent the report; the index is the leader's commit index when the report
//     arrived.
//   - A leader's mark is the newest time at which a quorum followed it, with its commit
//     index after it has determined that time. Its first mark is the first entry of its
//     leadership.
type mark struct {
	at    time.Time
	index uint64
}

// freshness contains the marks with an index that isn't applied yet, oldest first. at and
// index both increase from mark to mark.
type freshness struct {
	at      time.Time // the state is at least as fresh as this
	pending []mark
}

// markSteps is the number of marks kept within the bound on a read's age.
const markSteps = 64

// note adds a mark. If two marks are closer together than step, we keep the newer one. This
// can only understate the freshness.
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

// startAt makes the state as fresh as proposed: see Member.Opened.
func (f *freshness) startAt(proposed time.Time) {
	if proposed.After(f.at) {
		f.at = proposed
		f.pending = nil
	}
}

// reached removes the marks up to the applied index, and the marks older than oldest:
// with such an old state, the server answers no reads in any case. It returns the
// freshness.
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
