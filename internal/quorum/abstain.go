package quorum

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A path may drop large packets and let small ones pass, e.g. a tunnel with a wrong MTU. A
// leader with such paths sends heartbeats but replicates nothing, and would lead forever.
// If a leader's requests to a quorum haven't got through for two stall limits, even on new
// connections, we therefore stop its heartbeats and ask a follower to stand for election.
// That request is a small message. The leader's lease ends and Raft makes it a follower.
// From then on it abstains: it doesn't stand for election while another server leads or may
// be elected, because its vote requests are small and its log is the longest, so it would
// win again. The other servers don't wait for its vote. If there is no leader for
// leaderlessGrace, no other server can lead, and this server stands again. It also stands
// again after its own large packets have reached another leader.
//
// A vote request is smaller than a heartbeat. If the path drops heartbeats too, the lease
// of such a leader ends before the two stall limits are over, and its next vote requests
// win again. If no quorum has answered a leader since it won, we therefore make it abstain
// after one stall limit. If the path drops vote requests as well, each failed candidacy
// would raise the term and depose the leader that the other servers elect. A candidate
// therefore also abstains when its vote requests get stuck on the way to so many voters
// that the rest are no quorum.

const (
	// abstainFor is how long a server remembers that it could not replicate.
	abstainFor = time.Minute
	// leaderlessGrace is how long the other servers have for an election.
	leaderlessGrace = 4 * time.Second
)

// errAbstains is the reason why a server doesn't stand for election.
var errAbstains = errors.New("quorum: this server was not able to replicate as leader, and lets another one lead")

// errNotLeader is our answer to a server that transfers a leadership it doesn't have.
var errNotLeader = errors.New("quorum: only the leader hands over the lead")

// abstention records until when a server leaves the leadership to other servers.
type abstention struct {
	mu    sync.Mutex
	term  uint64    // the term in which this server couldn't replicate; 0: it doesn't abstain
	since time.Time // when this server found that out
	led   time.Time // when this server last heard from another leader

	stood uint64                     // the term of this server's last candidacy
	stuck map[raft.ServerID]struct{} // voters to which a vote request of that term got stuck
}

// begin starts the abstention, and reports whether it is new.
func (a *abstention) begin(term uint64, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.term == term {
		return false
	}
	a.term, a.since = term, now
	return true
}

// end ends the abstention of a leader that can replicate after all.
func (a *abstention) end(term uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.term == term {
		a.term = 0
	}
}

// over ends the abstention in any case.
func (a *abstention) over() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.term = 0
}

// stuckVote notes that a vote request of a term got stuck on the way to a voter, and
// reports whether the other voters of conf are no quorum.
func (a *abstention) stuckVote(term uint64, id raft.ServerID, conf raft.Configuration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if term < a.stood {
		return false
	}
	if term > a.stood {
		a.stood, a.stuck = term, make(map[raft.ServerID]struct{})
	}
	a.stuck[id] = struct{}{}
	voters, left := 0, 0
	for _, s := range conf.Servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if _, hit := a.stuck[s.ID]; !hit {
			left++
		}
	}
	return left <= voters/2
}

// heardLeader notes that another server leads.
func (a *abstention) heardLeader(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.led = now
}

// holds reports whether this server must not stand for election at the moment.
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

// helped reports whether another server has led since this one gave up the leadership.
func (a *abstention) helped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.term != 0 && a.led.Sub(a.since) > leaderlessGrace
}

// abstains reports whether this server leaves the leadership to other servers.
func (t *Transport) abstains() bool { return t.abstention.holds(time.Now()) }

// Reached tells the transport that this server's large packets reach the current leader.
func (t *Transport) Reached() {
	t.abstention.over()
	t.gagging.reset()
}

// cannotReplicate reports whether the leader of term must send no heartbeats
// because its requests don't reach a quorum.
func (t *Transport) cannotReplicate(term uint64, now time.Time) bool {
	if t.cfg.View == nil || !t.paths.some(term) {
		t.abstention.end(term)
		return false
	}
	if t.abstention.helped() {
		t.gagging.reset() // this server isn't the only one that can lead
	}
	conf := t.cfg.View().Config
	age := t.paths.stuck(term, conf, t.id, now, failuresInARow)
	if !t.gagging.silent(term, age, now) {
		if !t.Confirmed(term, conf, now).IsZero() {
			t.abstention.end(term)
		}
		return false
	}
	if t.abstention.begin(term, now) {
		t.cfg.Hub.log.Warn("this server stops leading: heartbeats reach the others, but no entries reach a quorum; "+
			"check the MTU of the network between the servers", "for", age.Round(time.Millisecond), "term", term)
		t.spawn(func() { t.resign(term, conf) })
	}
	return true
}

// resign asks the followers in turn, starting with the longest log, to stand for election
// immediately. The request is small and gets through. resign then closes the connections
// that this server has made, so that the other servers notice that it doesn't lead even
// if none of them stands.
func (t *Transport) resign(term uint64, conf raft.Configuration) {
	var voters []raft.Server
	for _, s := range conf.Servers {
		if s.Suffrage == raft.Voter && s.ID != t.id {
			voters = append(voters, s)
		}
	}
	slices.SortStableFunc(voters, func(a, b raft.Server) int {
		return cmp.Compare(t.Acked(term, b.ID), t.Acked(term, a.ID))
	})
	for _, s := range voters {
		if t.beats.TimeoutNow(s.ID, target(s.ID, s.Address), t.timeoutNow(), new(raft.TimeoutNowResponse)) == nil {
			break
		}
	}
	t.streams.hangUp()
}

// judgeWin is called when a request of term made no progress. It makes this server
// abstain if it won the election of that term and no AppendEntries, heartbeats included,
// has reached a quorum since. The lease may have ended by now.
func (t *Transport) judgeWin(term uint64, now time.Time) {
	if t.cfg.View == nil {
		return
	}
	conf := t.cfg.View().Config
	age := t.paths.stuck(term, conf, t.id, now, 1)
	if age < t.cfg.Stall || !t.Confirmed(term, conf, now).IsZero() {
		return
	}
	if t.abstention.begin(term, now) {
		t.cfg.Hub.log.Warn("this server has won an election and reaches no quorum with heartbeats or entries, and lets another server lead; "+
			"check the MTU of the network between the servers", "for", age.Round(time.Millisecond), "term", term)
	}
}

// judgeCandidacy is called when a vote request of term made no progress on its way to a
// voter. It makes this server abstain when the other voters are no quorum.
func (t *Transport) judgeCandidacy(term uint64, id raft.ServerID) {
	if t.cfg.View == nil || !t.abstention.stuckVote(term, id, t.cfg.View().Config) {
		return
	}
	if t.abstention.begin(term, time.Now()) {
		t.cfg.Hub.log.Warn("this server's requests for votes reach no quorum, though other servers answer; it lets another server lead; "+
			"check the MTU of the network between the servers", "term", term)
	}
}

// heartbeatFrom passes a heartbeat on and notes that another server leads.
func (t *Transport) heartbeatFrom(cb func(raft.RPC)) func(raft.RPC) {
	return func(rpc raft.RPC) {
		t.abstention.heardLeader(time.Now())
		cb(rpc)
	}
}
