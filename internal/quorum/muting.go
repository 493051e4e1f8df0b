package quorum

import (
	"sync"
	"time"
)

const (
	// stallLimit is how long a write to its log may hang before a leader falls
	// silent, so that a server with a working disk gets to lead.
	stallLimit = 5 * time.Second
	// maxPatience bounds how often that limit doubles.
	maxPatience = 4
	// calm is how long no write may have hung for the limit to be as at first.
	calm = time.Minute
)

// muting decides when a leader whose disk hangs falls silent.
//
// It speaks again when the write has come to its end, if nobody else leads by
// then. In every further leadership of this server the limit is twice as long:
// where all disks are equally slow nobody is a better leader, and those who
// are elected have to be left in peace for long enough to get an entry written.
type muting struct {
	limit time.Duration // at first

	mu    sync.Mutex
	terms int       // in which this server fell silent
	term  uint64    // the last of them
	slow  time.Time // when a write was last seen to hang
}

// reset makes the limit what it was at first.
func (m *muting) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.terms = 0
}

// silent reports whether the leader of term must not send: age is how long the
// oldest write to its log has been hanging.
func (m *muting) silent(term uint64, age time.Duration, now time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if age <= m.limit {
		if m.terms > 0 && now.Sub(m.slow) > calm {
			m.terms = 0
		}
		return false
	}
	m.slow = now
	before := m.terms // in other terms than this one
	if before > 0 && m.term == term {
		before--
	}
	if age <= m.limit<<min(before, maxPatience) {
		return false
	}
	m.terms, m.term = before+1, term
	return true
}
