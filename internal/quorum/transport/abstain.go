package transport

import (
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// A path may drop large packets and let small ones pass, e.g. a tunnel with a wrong MTU. A
// leader with such paths sends heartbeats but replicates nothing, and would lead forever.
// If a leader's requests to a quorum haven't got through for two stall limits, even on new
// connections, we therefore stop its heartbeats and ask a follower to start an election.
// That request is a small message. The leader's lease ends and Raft makes it a follower.
// From then on it abstains: it starts no election while another server leads or may be
// elected. Its vote requests are small and its log is the longest, so it would win again.
// The other servers don't wait for its vote. The server stops abstaining if there is no
// leader for leaderlessGrace, because then no other server can lead, or after its own
// large packets have reached another leader.
//
// A vote request is smaller than a heartbeat. If the path drops heartbeats too, the
// lease of such a leader ends before the two stall limits are over, and it wins the
// next election again. We therefore make a leader abstain after one stall limit if no
// quorum has answered it since its election. If the path drops vote requests as well,
// each failed candidacy would raise the term and depose the leader that the other
// servers elect. A candidate therefore also abstains when its vote requests get stuck
// on the way to so many voters that the rest don't form a quorum.

const (
	// abstainFor is the duration of an abstention.
	abstainFor = time.Minute
	// leaderlessGrace is the time for the other servers to elect a leader.
	leaderlessGrace = 4 * time.Second
)

// errAbstains is the error of a server that abstains from elections.
var errAbstains = errors.New("quorum: this server was not able to replicate as leader, and lets another one lead")

// errNotLeader is our answer to a server that transfers a leadership it doesn't have.
var errNotLeader = errors.New("quorum: only the leader transfers its leadership")

// abstention records whether, and for how long, a server leaves the leadership to other
// servers.
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

// holds reports whether this server must not start an election now.
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
