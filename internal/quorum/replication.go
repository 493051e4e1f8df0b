package quorum

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's leader sleeps after a failed AppendEntries, up to 10.24 s after the twelfth
// consecutive failure, and the follower's return doesn't end that sleep. We therefore don't
// report failures to Raft: we repeat the request, with short pauses, as long as this server
// leads the term of the request and the follower is a member at that address. We don't
// repeat heartbeats, because they decide how long this server may lead.

const (
	// firstPause and lastPause are the pauses between two attempts to reach a
	// follower.
	firstPause = 10 * time.Millisecond
	lastPause  = 200 * time.Millisecond
	// failuresInARow is how many consecutive failures mean that a path is broken: the
	// second request was made on a new connection.
	failuresInARow = 2
)

// paths tracks the replication to each follower in one term.
type paths struct {
	mu      sync.Mutex
	term    uint64
	failing map[raft.ServerID]failing
	silent  map[raft.ServerID]int    // how many heartbeats in a row a server has not answered
	ahead   map[raft.ServerID]uint64 // followers that have a newer snapshot than Raft knows, and its index
	news    chan struct{}            // closed when a follower answers a heartbeat; nil: no goroutine waits
}

// failing is a path on which recent requests failed.
type failing struct {
	since time.Time // when the first of them began
	times int
}

// failed records a request that began at the given time and failed. It reports whether that
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

// enter forgets the former terms when a new one begins. It returns false for a former
// term. p.mu is held.
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
// That holds until the next successful request.
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

// covers reports whether a follower has just confirmed a snapshot that goes up to index at
// least. It reports that only once.
func (p *paths) covers(term uint64, id raft.ServerID, index uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term != p.term || p.ahead[id] < index {
		return false
	}
	delete(p.ahead, id)
	return true
}

// fails reports whether the last requests or the last heartbeats to a server failed. We
// check the heartbeats, too, because a leader without writes sends hardly anything else.
func (p *paths) fails(term uint64, id raft.ServerID) bool {
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

// replicate carries out a request of Raft's main stream to a follower. It retries until
// the request succeeds or is obsolete.
func (t *Transport) replicate(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest) *sent {
	for pauseFor := firstPause; ; pauseFor = min(2*pauseFor, lastPause) {
		began := time.Now()
		s := t.request(id, addr, args)
		if s.err == nil {
			t.paths.works(args.Term, id)
			return s
		}
		t.noteFailure(args.Term, id, began, s.err)
		if !t.replicates(args.Term, id, addr) || !t.pause(pauseFor) || !t.replicates(args.Term, id, addr) {
			return s
		}
	}
}

// Failing reports whether this server, as the leader of term, currently can't replicate
// to the given server.
func (t *Transport) Failing(term uint64, id raft.ServerID) bool { return t.paths.fails(term, id) }

// noteFailure records that replication to a follower failed.
func (t *Transport) noteFailure(term uint64, id raft.ServerID, began time.Time, err error) {
	if errors.Is(err, ErrMuted) || t.closed() {
		return
	}
	first := t.paths.failed(term, id, began)
	if !t.streams.stalledSince(string(id), began) {
		return
	}
	if first {
		t.cfg.Hub.log.Info("replacing a connection on which a follower makes no progress", "server", id, "for", t.cfg.Stall)
	}
	t.judgeWin(term, time.Now())
}

// replicates reports whether this server leads a term and has the follower at the
// address.
func (t *Transport) replicates(term uint64, id raft.ServerID, addr raft.ServerAddress) bool {
	if t.closed() || t.cfg.View == nil {
		return false
	}
	v := t.cfg.View()
	return v.Leader == t.id && v.Term == term && slices.ContainsFunc(v.Config.Servers,
		func(s raft.Server) bool { return s.ID == id && s.Address == addr })
}

// pause sleeps for d. It returns false if the transport was closed.
func (t *Transport) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.done:
		return false
	}
}
