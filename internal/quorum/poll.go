package quorum

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// When a server has lost its leader, we ask the other voters before it stands for election.
// Raft's own pre-vote doesn't help here: a voter denies it until it has missed the
// heartbeats of a leader that was just killed, and waiting for that takes seconds. If the
// server stood without asking, it could depose a leader that was just elected and hasn't
// announced itself yet. If that server's log is too short to win, no server leads until
// Raft's timers run out.

const (
	// askLimit bounds the wait for one answer. A live server answers immediately, because
	// the answer needs neither its disk nor Raft's main loop.
	askLimit = 300 * time.Millisecond
	// maxAsk is the maximum that limit grows to when too few servers answer.
	maxAsk = 3 * time.Second
	// maxStanding bounds an answer.
	maxStanding = 1 << 10
)

// standing is what a server reports about itself to other servers.
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

// compare orders servers by their logs, as Raft does when it grants a vote: by the term
// of the last entry, then by its index.
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

// pollAnswer is another voter's answer to a poll.
type pollAnswer struct {
	id       raft.ServerID
	presence presence
	standing
}

// answerPoll reports this server's standing to a server that asks.
func (t *Transport) answerPoll(conn net.Conn, _ Identity) {
	defer conn.Close()
	if t.closed() || t.cfg.View == nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(askLimit))
	mine := t.cfg.View().standing()
	if mine.Abstains = t.abstains(); mine.Abstains && mine.Leader == t.id {
		mine.Leader = "" // this server won't lead for long
	}
	_ = json.NewEncoder(conn).Encode(mine)
}

// poll asks every other voter and waits up to limit for the answers.
func (t *Transport) poll(ctx context.Context, v View, limit time.Duration) []pollAnswer {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var others []raft.Server
	for _, s := range v.Config.Servers {
		if s.Suffrage == raft.Voter && s.ID != t.id {
			others = append(others, s)
		}
	}
	answers := make([]pollAnswer, len(others))
	var wg sync.WaitGroup
	for i, s := range others {
		wg.Go(func() { answers[i] = t.ask(ctx, s) })
	}
	wg.Wait()
	running, voters := 0, len(answers)
	for _, s := range v.Config.Servers {
		if s.Suffrage == raft.Voter && s.ID == t.id {
			running, voters = 1, voters+1
		}
	}
	if running+heard(answers)-1 > voters/2 && !t.followed(answers) {
		t.quorumAt.Store(time.Now().UnixNano())
	}
	return answers
}

// followed reports whether a server that answered follows a leader that may be alive. In
// that case we don't need an election: only this server has lost the leader.
func (t *Transport) followed(answers []pollAnswer) bool {
	return slices.ContainsFunc(answers, func(v pollAnswer) bool {
		return v.presence == answered && v.Leader != "" && v.Leader != t.id && alive(v.Leader, answers)
	})
}

// RollCall asks every other voter for its standing, so that QuorumRuns is up to date.
func (t *Transport) RollCall(ctx context.Context) {
	if !t.closed() && t.cfg.View != nil {
		t.poll(ctx, t.cfg.View(), askLimit)
	}
}

// QuorumRuns reports whether a quorum that follows no leader has answered this server
// within d.
func (t *Transport) QuorumRuns(d time.Duration) bool {
	return time.Since(time.Unix(0, t.quorumAt.Load())) < d
}

// ask asks one server, at every address where it may be. The server is absent if all of
// its addresses refuse the connection.
func (t *Transport) ask(ctx context.Context, s raft.Server) pollAnswer {
	addrs := []string{string(s.Address)}
	if t.cfg.Elsewhere != nil {
		addrs = Addresses(addrs[0], t.cfg.Elsewhere(s.ID))
	}
	found := pollAnswer{id: s.ID, presence: absent}
	for i, addr := range addrs {
		part, cancel := Share(ctx, len(addrs)-i)
		conn, _, err := t.cfg.Hub.Dial(part, Poll, addr, string(s.ID))
		cancel()
		if err != nil {
			if !Refused(err) {
				found.presence = silent
			}
			continue
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		err = json.NewDecoder(io.LimitReader(conn, maxStanding)).Decode(&found.standing)
		stop()
		_ = conn.Close()
		if err != nil {
			return pollAnswer{id: s.ID}
		}
		found.presence = answered
		return found
	}
	return found
}

// heard counts the servers that are known to run, including this one.
func heard(answers []pollAnswer) int {
	n := 1
	for _, v := range answers {
		if v.presence == answered {
			n++
		}
	}
	return n
}

// outranked reports whether a server with a higher id answered, isn't a candidate yet and
// has an equally good log.
func outranked(self raft.ServerID, mine standing, answers []pollAnswer) bool {
	return slices.ContainsFunc(answers, func(v pollAnswer) bool {
		return v.presence == answered && !v.Candidate && !v.Abstains && v.compare(mine) == 0 && CompareIDs(v.id, self) > 0
	})
}

// withoutBetter returns answers as if no server with a better log had answered: the rest
// may then elect this server.
func withoutBetter(answers []pollAnswer, mine standing) []pollAnswer {
	out := slices.Clone(answers)
	for i, v := range out {
		if v.presence == answered && v.Leader == "" && v.compare(mine) > 0 {
			out[i] = pollAnswer{id: v.id}
		}
	}
	return out
}

// alive reports whether a server that another server follows may be leading: it confirms
// that, or it didn't answer. We leave a frozen process to Raft's timers.
func alive(leader raft.ServerID, answers []pollAnswer) bool {
	for _, v := range answers {
		if v.id == leader {
			return v.presence == silent || v.presence == answered && v.Leader == leader
		}
	}
	return true // it has no vote, so the poll didn't ask it
}

// leads reports whether a server says that it is the leader.
func leads(leader raft.ServerID, answers []pollAnswer) bool {
	for _, v := range answers {
		if v.id == leader {
			return v.presence == answered && v.Leader == leader
		}
	}
	return false
}

// mayStand decides, from the other voters' answers, whether this server should stand for
// election. All servers that ask at the same time should come to the same decision. A
// patient server waits for late answers and for servers with an equally good log.
func mayStand(self raft.ServerID, mine standing, answers []pollAnswer, patient bool) bool {
	if mine.Candidate {
		return false // it is a candidate already
	}
	heard := 1
	for _, v := range append(answers, pollAnswer{id: self, presence: answered, standing: mine}) {
		if v.presence == answered && v.Leader != "" && v.Leader != self && alive(v.Leader, answers) {
			return false
		}
	}
	for _, v := range answers {
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
	return heard > (len(answers)+1)/2
}
