package transport

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// When a server has lost its leader, it polls the other voters before it starts an
// election. Raft's own pre-vote doesn't help here: a voter denies it until it has missed
// the heartbeats of a leader that was just killed, which lasts seconds. Without the poll,
// the server could depose a leader that was just elected and hasn't announced itself yet.
// If its own log is then too short to win, no server leads until Raft's timers run out.

const (
	// askLimit bounds the wait for one answer. A live server answers immediately, because
	// the answer needs neither its disk nor Raft's main loop.
	askLimit = 300 * time.Millisecond
	// maxAsk is the maximum that limit grows to when too few servers answer.
	maxAsk = 3 * time.Second
	// maxStanding bounds an answer.
	maxStanding = 1 << 10
)

// standing is the report of a server about itself.
type standing struct {
	Leader    raft.ServerID `json:"leader,omitempty"` // the server that it follows, itself when it leads
	Candidate bool          `json:"candidate,omitempty"`
	Index     uint64        `json:"index"` // index of its last entry
	Term      uint64        `json:"term"`  // term of that entry
	// Abstains: the server couldn't replicate when it led, and leaves the leadership to
	// others.
	Abstains bool `json:"abstains,omitempty"`
}

func (v View) standing() standing {
	return standing{Leader: v.Leader, Candidate: v.Candidate, Index: v.LastIndex, Term: v.LastTerm}
}

// compare orders servers by their logs in the same way as Raft's vote: by the term of the
// last entry, then by its index.
func (s standing) compare(o standing) int {
	return cmp.Or(cmp.Compare(s.Term, o.Term), cmp.Compare(s.Index, o.Index))
}

// presence is the outcome of a question.
type presence uint8

const (
	silent   presence = iota // no answer: the server's state is unknown
	answered                 // the process runs
	absent                   // its port refuses: the process is gone
)

// reply is another voter's answer to a poll.
type reply struct {
	id       raft.ServerID
	presence presence
	standing
}

// poll asks the other voters for their state, and answers them.
//
// Invariants:
//   - An answer needs neither the disk nor Raft's main loop. Otherwise a slow server would
//     delay the election that replaces its leader.
//   - A server that doesn't answer is neither alive nor gone: only a port that refuses
//     connections shows that a process is gone.
type poll struct {
	*instance
	abstention *abstention
	quorumAt   atomic.Int64 // when a quorum that follows no leader last answered, in Unix nanoseconds
}

// answer reports this server's standing to a server that asks.
func (p *poll) answer(conn net.Conn, _ quorum.Identity) {
	defer conn.Close()
	if p.closed() || p.cfg.View == nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(askLimit))
	mine := p.cfg.View().standing()
	if mine.Abstains = p.abstention.holds(time.Now()); mine.Abstains && mine.Leader == p.cfg.ID {
		mine.Leader = "" // it won't lead for long
	}
	_ = json.NewEncoder(conn).Encode(mine)
}

// askAll asks every other voter and waits up to limit for the answers.
func (p *poll) askAll(ctx context.Context, v View, limit time.Duration) []reply {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	others := otherVoters(v.Config, p.cfg.ID)
	replies := make([]reply, len(others))
	var wg sync.WaitGroup
	for i, s := range others {
		wg.Go(func() { replies[i] = p.ask(ctx, s) })
	}
	wg.Wait()
	running, voters := 0, len(replies)
	for _, s := range v.Config.Servers {
		if s.Suffrage == raft.Voter && s.ID == p.cfg.ID {
			running, voters = 1, voters+1
		}
	}
	if running+heard(replies)-1 > voters/2 && !p.followed(replies) {
		p.quorumAt.Store(time.Now().UnixNano())
	}
	return replies
}

// otherVoters returns the voters of conf without the given server.
func otherVoters(conf raft.Configuration, id raft.ServerID) (others []raft.Server) {
	for _, s := range conf.Servers {
		if s.Suffrage == raft.Voter && s.ID != id {
			others = append(others, s)
		}
	}
	return others
}

// followed reports whether a server that answered follows a leader that may be alive. Then
// there is no election: only this server has lost the leader.
func (p *poll) followed(replies []reply) bool {
	return slices.ContainsFunc(replies, func(v reply) bool {
		return v.presence == answered && v.Leader != "" && v.Leader != p.cfg.ID && alive(v.Leader, replies)
	})
}

// RollCall asks every other voter for its standing, so that QuorumRuns is up to date.
func (p *poll) RollCall(ctx context.Context) {
	if !p.closed() && p.cfg.View != nil {
		p.askAll(ctx, p.cfg.View(), askLimit)
	}
}

// QuorumRuns reports whether a quorum that follows no leader has answered this server
// within d.
func (p *poll) QuorumRuns(d time.Duration) bool {
	return time.Since(time.Unix(0, p.quorumAt.Load())) < d
}

// ask polls one server at all of its addresses. The server is absent if every address
// refuses the connection.
func (p *poll) ask(ctx context.Context, s raft.Server) reply {
	addrs := []string{string(s.Address)}
	if p.cfg.Elsewhere != nil {
		addrs = quorum.Addresses(addrs[0], p.cfg.Elsewhere(s.ID))
	}
	found := reply{id: s.ID, presence: absent}
	for i, addr := range addrs {
		part, cancel := quorum.Share(ctx, len(addrs)-i)
		conn, _, err := p.cfg.Hub.Dial(part, quorum.Poll, addr, string(s.ID))
		cancel()
		if err != nil {
			if !quorum.Refused(err) {
				found.presence = silent
			}
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		err = json.NewDecoder(io.LimitReader(conn, maxStanding)).Decode(&found.standing)
		stop()
		_ = conn.Close()
		if err != nil {
			return reply{id: s.ID}
		}
		found.presence = answered
		return found
	}
	return found
}

// heard counts the servers that are known to run, including this one.
func heard(replies []reply) int {
	n := 1
	for _, v := range replies {
		if v.presence == answered {
			n++
		}
	}
	return n
}

// outranked reports whether a server with a higher id answered, isn't a candidate yet and
// has an equally good log.
func outranked(self raft.ServerID, mine standing, replies []reply) bool {
	return slices.ContainsFunc(replies, func(v reply) bool {
		return v.presence == answered && !v.Candidate && !v.Abstains && v.compare(mine) == 0 && CompareIDs(v.id, self) > 0
	})
}

// withoutBetter returns replies as if no server with a better log had answered: the rest
// may then elect this server.
func withoutBetter(replies []reply, mine standing) []reply {
	out := slices.Clone(replies)
	for i, v := range out {
		if v.presence == answered && v.Leader == "" && v.compare(mine) > 0 {
			out[i] = reply{id: v.id}
		}
	}
	return out
}

// alive reports whether a server that another server follows may be leading: it reports
// that itself, or it didn't answer. Raft's timers should judge a frozen process.
func alive(leader raft.ServerID, replies []reply) bool {
	for _, v := range replies {
		if v.id == leader {
			return v.presence == silent || v.presence == answered && v.Leader == leader
		}
	}
	return true // it has no vote, so the poll didn't ask it
}

// leads reports whether a server claims to be the leader.
func leads(leader raft.ServerID, replies []reply) bool {
	for _, v := range replies {
		if v.id == leader {
			return v.presence == answered && v.Leader == leader
		}
	}
	return false
}

// mayStand decides from the other voters' answers whether this server should start an
// election. All servers that poll at the same time come to the same decision. A patient
// server waits for late answers and for servers with an equally good log.
func mayStand(self raft.ServerID, mine standing, replies []reply, patient bool) bool {
	if mine.Candidate {
		return false // it is a candidate already
	}
	heard := 1
	for _, v := range append(replies, reply{id: self, presence: answered, standing: mine}) {
		if v.presence == answered && v.Leader != "" && v.Leader != self && alive(v.Leader, replies) {
			return false
		}
	}
	for _, v := range replies {
		switch v.presence {
		case silent:
			if patient {
				return false
			}
		case answered:
			c := v.compare(mine)
			if v.Abstains {
				if c <= 0 {
					heard++ // it will grant its vote
				}
				continue
			}
			heard++
			if c > 0 || patient && c == 0 && (v.Candidate || CompareIDs(v.id, self) > 0) {
				return false
			}
		}
	}
	return heard > (len(replies)+1)/2
}
