package transport

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// paths tracks the replication to each follower in one term.
//
// Invariant: observations from an earlier term don't count. Otherwise a new leader would
// give way because of failures of an earlier leadership, or would assume that a follower
// has a snapshot which it has lost since.
type paths struct {
	mu      sync.Mutex
	term    uint64
	failing map[raft.ServerID]failing
	silent  map[raft.ServerID]int    // number of consecutive heartbeats without an answer
	ahead   map[raft.ServerID]uint64 // index of a follower's snapshot that is newer than Raft knows
	news    chan struct{}            // closed when a follower answers a heartbeat; nil: no goroutine waits
}

// failing is a path on which recent requests failed.
type failing struct {
	since time.Time // start of the first one
	times int
}

// failed records a failed request that started at the given time. It reports whether that
// is the first of consecutive failures.
func (p *paths) failed(term uint64, id raft.ServerID, began time.Time) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.enter(term) {
		return false
	}
	f := p.failing[id]
	if f.times == 0 {
		f.since = began
	}
	f.times++
	p.failing[id] = f
	return f.times == 1
}

// enter drops the observations from earlier terms when a new one starts. It returns false
// for an earlier term. The caller must hold p.mu.
func (p *paths) enter(term uint64) bool {
	if term > p.term || p.failing == nil {
		p.term, p.failing, p.silent, p.ahead = term, make(map[raft.ServerID]failing), make(map[raft.ServerID]int), nil
	}
	return term == p.term
}

// works records a successful request.
func (p *paths) works(term uint64, id raft.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term == p.term {
		delete(p.failing, id)
		delete(p.ahead, id)
	}
}

// confirmed records that a follower has installed a newer snapshot than Raft asked for.
// The record remains valid until the next successful request.
func (p *paths) confirmed(term uint64, id raft.ServerID, index uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term != p.term {
		return
	}
	if p.ahead == nil {
		p.ahead = make(map[raft.ServerID]uint64)
	}
	p.ahead[id] = index
}

// covers reports whether a follower has confirmed a snapshot that ends at index or later.
// It consumes the confirmation.
func (p *paths) covers(term uint64, id raft.ServerID, index uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term != p.term || p.ahead[id] < index {
		return false
	}
	delete(p.ahead, id)
	return true
}

// Failing reports whether the last requests or the last heartbeats to a server failed.
// Heartbeats count because a leader without writes sends little else.
func (p *paths) Failing(term uint64, id raft.ServerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return term == p.term && max(p.failing[id].times, p.silent[id]) >= failuresInARow
}

// beat records the outcome of a heartbeat.
func (p *paths) beat(term uint64, id raft.ServerID, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case !p.enter(term):
	case err == nil:
		delete(p.silent, id)
	default:
		p.silent[id]++
	}
}

// some reports whether any path fails in a term.
func (p *paths) some(term uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return term == p.term && len(p.failing) > 0
}

// stuck returns how long this server has been unable to replicate to a quorum of the
// voters, 0 if it is able to. A path counts as failing after the given number of
// consecutive failures.
func (p *paths) stuck(term uint64, conf raft.Configuration, self raft.ServerID, now time.Time, times int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term != p.term {
		return 0
	}
	var ages []time.Duration
	for _, s := range conf.Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		age := time.Duration(0)
		if f := p.failing[s.ID]; f.times >= times && s.ID != self {
			age = now.Sub(f.since)
		}
		ages = append(ages, age)
	}
	if len(ages) == 0 {
		return 0
	}
	slices.Sort(ages)
	return ages[len(ages)/2]
}

// heard wakes the goroutines that wait for a follower.
func (p *paths) heard() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.news != nil {
		close(p.news)
		p.news = nil
	}
}

func (p *paths) changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.news == nil {
		p.news = make(chan struct{})
	}
	return p.news
}
