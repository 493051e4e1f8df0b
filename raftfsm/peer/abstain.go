package peer

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A path may lose large packets and let small ones pass: a tunnel with a wrong MTU.
// A leader with such paths sends heartbeats and replicates nothing, and would lead
// for ever. So a leader whose requests to a quorum have not got through for two
// stall limits, on new connections too, stops its heartbeats; its lease ends and
// Raft makes it a follower. It abstains from then on: it does not stand for
// election while another server leads or may be elected, because its requests for
// votes are small and its log is the longest. The others do not wait for it. When
// there is no leader for leaderlessGrace, no other server can lead, and it stands
// again. It also stands again after large packets of its own have reached another
// leader.

const (
	// abstainFor is how long a server remembers that it could not replicate.
	abstainFor = time.Minute
	// leaderlessGrace is how long the others have for an election.
	leaderlessGrace = 4 * time.Second
)

// errAbstains is why a server does not stand for election.
var errAbstains = errors.New("peer: this server was not able to replicate as leader, and lets another one lead")

// abstention says until when a server leaves the lead to others.
type abstention struct {
	mu    sync.Mutex
	term  uint64    // in which it could not replicate; 0: it does not abstain
	since time.Time // when it found that out
	led   time.Time // when another leader was last heard
}

// begin begins to abstain, and reports whether that is news.
func (a *abstention) begin(term uint64, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.term == term {
		return false
	}
	a.term, a.since = term, now
	return true
}

// end ends it for a leader that can replicate after all.
func (a *abstention) end(term uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.term == term {
		a.term = 0
	}
}

// over ends it in any case.
func (a *abstention) over() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.term = 0
}

// heardLeader notes that another server leads.
func (a *abstention) heardLeader(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.led = now
}

// holds reports whether this server must not stand.
func (a *abstention) holds(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.term == 0 || now.Sub(a.since) > abstainFor {
		return false
	}
	from := a.since
	if a.led.After(from) {
		from = a.led
	}
	return now.Sub(from) < leaderlessGrace
}

// helped reports whether another server has led since this one gave up the lead.
func (a *abstention) helped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.term != 0 && a.led.Sub(a.since) > leaderlessGrace
}

// abstains reports whether this server leaves the lead to others.
func (t *Transport) abstains() bool { return t.abstention.holds(time.Now()) }

// Reached tells the transport that large packets of this server reach the one that
// leads it.
func (t *Transport) Reached() {
	t.abstention.over()
	t.gagging.reset()
}

// cannotReplicate reports whether the leader of term must send no heartbeats
// because its requests do not reach a quorum.
func (t *Transport) cannotReplicate(term uint64, now time.Time) bool {
	if t.cfg.View == nil || !t.paths.some(term) {
		t.abstention.end(term)
		return false
	}
	if t.abstention.helped() {
		t.gagging.reset() // this server is not the only one that can lead
	}
	age := t.paths.stuck(term, t.cfg.View().Config, t.id, now)
	if !t.gagging.silent(term, age, now) {
		t.abstention.end(term)
		return false
	}
	if t.abstention.begin(term, now) {
		t.cfg.Hub.log.Warn("this server stops leading: heartbeats reach the others, but no entries reach a quorum; "+
			"check the MTU of the network between the servers", "for", age.Round(time.Millisecond), "term", term)
		t.streams.hangUp() // the others look for another leader at once
	}
	return true
}

// heartbeatFrom passes a heartbeat on and notes that another server leads.
func (t *Transport) heartbeatFrom(cb func(raft.RPC)) func(raft.RPC) {
	return func(rpc raft.RPC) {
		t.abstention.heardLeader(time.Now())
		cb(rpc)
	}
}
