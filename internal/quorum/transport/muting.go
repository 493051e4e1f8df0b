package transport

import (
	"sync"
	"time"
)

const (
	// stallLimit is the time that a write to the log may hang before a leader goes
	// silent, so that a server with a working disk can lead.
	stallLimit = 5 * time.Second
	// maxPatience limits the number of times that stallLimit doubles.
	maxPatience = 4
	// calm is the time without a hanging write after which the limit returns to its
	// initial value.
	calm = time.Minute
)

// muting decides when a leader with a hanging disk goes silent.
//
// It resumes after the write has completed, unless another server leads by then. We double
// the limit with every further term in which this server goes silent: if all disks are
// equally slow, no server is a better leader, and an elected leader needs enough time to
// get an entry written.
type muting struct {
	limit time.Duration // initial limit

	mu    sync.Mutex
	terms int       // number of terms in which this server went silent
	term  uint64    // the last of these terms
	slow  time.Time // when a write was last seen to hang
}

// reset restores the initial limit.
func (m *muting) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.terms = 0
}

// silent reports whether the leader of term must not send. age is the age of the oldest
// write to its log.
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
	before := m.terms // not counting this term
	if before > 0 && m.term == term {
		before--
	}
	if age <= m.limit<<min(before, maxPatience) {
		return false
	}
	m.terms, m.term = before+1, term
	return true
}
