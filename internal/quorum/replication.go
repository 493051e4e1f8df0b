package quorum

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// Raft's leader sleeps after a failed AppendEntries, up to 10.24 s after the
// twelfth failure in a row, and nothing ends that sleep when the follower is back.
// So the transport does not report failures to Raft: it repeats the request, with
// short pauses, for as long as this server leads the term of the request and the
// follower is a member at that address. Heartbeats, which decide how long this
// server may lead, are not repeated.

const (
	// firstPause and lastPause are the pauses between two attempts to reach a
	// follower.
	firstPause = 10 * time.Millisecond
	lastPause  = 200 * time.Millisecond
	// failuresInARow tell that a path does not work: the second of them was made on
	// a new connection.
	failuresInARow = 2
)

// paths is how replication to each follower goes in one term.
type paths struct {
	mu      sync.Mutex
	term    uint64
	failing map[raft.ServerID]failing
	news    chan struct{} // closed when a follower answers a heartbeat; nil: nobody waits
}

// failing is a path on which no request got through lately.
type failing struct {
	since time.Time // when the first of them began
	times int
}

// failed notes a request that began at a time and did not get through. It
// reports whether that is the first in a row.
func (p *paths) failed(term uint64, id raft.ServerID, began time.Time) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term < p.term {
		return false
	}
	if term > p.term || p.failing == nil {
		p.term, p.failing = term, make(map[raft.ServerID]failing)
	}
	f := p.failing[id]
	if f.times == 0 {
		f.since = began
	}
	f.times++
	p.failing[id] = f
	return f.times == 1
}

// works notes a request that got through.
func (p *paths) works(term uint64, id raft.ServerID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if term == p.term {
		delete(p.failing, id)
	}
}

// fails reports whether the last requests to a server did not get through.
func (p *paths) fails(term uint64, id raft.ServerID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return term == p.term && p.failing[id].times >= failuresInARow
}

// some reports whether any path fails in a term.
func (p *paths) some(term uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return term == p.term && len(p.failing) > 0
}

// stuck is for how long this server has not been able to replicate to a quorum of
// the voters, 0 when it is. A path counts when that many requests in a row have not
// got through.
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

// heard wakes those who wait for a follower.
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

// replicate carries out a request of Raft's main stream to a follower, again and
// again until it gets through or is of no use any more.
func (t *Transport) replicate(id raft.ServerID, addr raft.ServerAddress, args *raft.AppendEntriesRequest) *sent {
	for pauseFor := firstPause; ; pauseFor = min(2*pauseFor, lastPause) {
		began := time.Now()
		s := t.request(id, addr, args)
		if s.err == nil {
			t.paths.works(args.Term, id)
			return s
		}
		t.noteFailure(args.Term, id, began, s.err)
		if !t.replicates(args.Term, id, addr) || !t.rest(pauseFor) || !t.replicates(args.Term, id, addr) {
			return s
		}
	}
}

// Failing reports whether this server, as the leader of a term, cannot replicate to
// another at the moment.
func (t *Transport) Failing(term uint64, id raft.ServerID) bool { return t.paths.fails(term, id) }

// noteFailure remembers that replication to a follower failed.
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

// replicates says whether this server leads a term and has a follower at an address.
func (t *Transport) replicates(term uint64, id raft.ServerID, addr raft.ServerAddress) bool {
	if t.closed() || t.cfg.View == nil {
		return false
	}
	v := t.cfg.View()
	return v.Leader == t.id && v.Term == term && slices.ContainsFunc(v.Config.Servers,
		func(s raft.Server) bool { return s.ID == id && s.Address == addr })
}

// rest waits, false when the transport was closed.
func (t *Transport) rest(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-t.done:
		return false
	}
}

// awaitFollower waits until a follower has answered a heartbeat lately. A snapshot
// can be sent only once: it cannot be read again, and Raft counts a failure.
func (t *Transport) awaitFollower(term uint64, id raft.ServerID, addr raft.ServerAddress) {
	for t.replicates(term, id, addr) {
		changed := t.paths.changed()
		if time.Since(t.Contact(term, id)) < t.cfg.Stall {
			return
		}
		timer := time.NewTimer(lastPause)
		select {
		case <-changed:
		case <-timer.C:
		case <-t.done:
		}
		timer.Stop()
	}
}
