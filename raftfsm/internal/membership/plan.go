package membership

import (
	"slices"

	"github.com/hashicorp/raft"
)

// How a change of the membership becomes a sequence of single changes of Raft's
// configuration. Plan is a pure function: it computes all steps from the leader's
// knowledge. The leader executes the first step and then plans again, so that the
// next plan accounts for a server that dies in the meantime.
//
// Call a configuration live if more than half of its voters are live. Raft commits
// a change under the configuration that the change makes, and every later entry
// too. A step is therefore safe if the configuration after it is live.
//
// Let O be the present voters and T the voters of the target. The order is:
//
//  1. Remove servers that have lost their disk or address to another server. They are not
//     live.
//  2. Add servers that join, without a vote.
//  3. Remove the votes of servers outside T that are not live.
//  4. Give votes to live servers of T.
//  5. Remove the votes of live servers outside T, except the leader's.
//  6. If the leader is outside T, hand leadership to a voter of T. The next leader
//     removes the vote.
//
// Claim: if O and T are live, every configuration on the way is live.
//
//   - Steps 1 and 3 remove dead voters. If l of n voters are live and l > n/2,
//     then l > (n-1)/2.
//   - Step 2 does not change the voters.
//   - Step 4 adds live voters: if l > n/2, then l+1 > (n+1)/2.
//   - After step 4 all live servers of T vote, and every dead voter is a server of
//     T. There are more live servers of T than dead ones, so these voters are a
//     live configuration, with and without further live voters (step 5).
//   - Step 6 finds a live voter of T, because T is live and step 4 is done.
//
// If O or T is not live, no order works, since every order starts with O and ends with T.
// We therefore refuse a change only if every other order would fail as well. Steps 1 to 4
// need O alone to be live. We also execute them if T is already in force and has lost its
// majority for the moment.
//
// A dead server of T that has no vote yet does not get one in the plan. It gets its
// vote when it is back, which is step 4 again. The claim covers that case: T counts
// such a server as dead, and the plan leaves out a dead voter.

// StepKind is the type of a step.
type StepKind uint8

// The kinds of step.
const (
	DropServer StepKind = iota + 1 // remove a server from Raft's configuration
	AddServer                      // add a server without a vote
	TakeVote
	GiveVote
	HandOver // leadership, to a voter of the target
)

// Step is one change of Raft's configuration, or the transfer of leadership.
type Step struct {
	Kind StepKind
	ID   raft.ServerID // the leader's for HandOver
}

// Change is everything that a plan depends on.
type Change struct {
	Servers []raft.Server // Raft's configuration
	Target  *List
	Leader  raft.ServerID
	Live    map[raft.ServerID]bool
	Joiners []raft.Server // live members of the target that Raft's configuration does not have, by ServerID
}

// Plan returns the steps to the target. ok is false if no order of steps to the target
// keeps a live majority of voters at all times. It then returns the steps that are safe
// nevertheless.
func (p *Change) Plan() (steps []Step, ok bool) {
	if !Majority(p.Servers, p.Live) {
		return nil, false
	}
	var by [HandOver + 1][]Step
	add := func(kind StepKind, id raft.ServerID) { by[kind] = append(by[kind], Step{kind, id}) }
	var deadVotes, lastVote []Step
	for _, s := range p.Servers {
		votes, shall := s.Suffrage == raft.Voter, p.Target.votes(ServerOf(s.ID))
		switch {
		case !p.Live[s.ID] && p.displaced(s):
			add(DropServer, s.ID)
		case votes && !shall && s.ID == p.Leader:
			add(HandOver, s.ID)
			lastVote = append(lastVote, Step{TakeVote, s.ID})
		case votes && !shall && !p.Live[s.ID]:
			deadVotes = append(deadVotes, Step{TakeVote, s.ID})
		case votes && !shall:
			add(TakeVote, s.ID)
		case !votes && shall && p.Live[s.ID]:
			add(GiveVote, s.ID)
		}
	}
	for _, j := range p.Joiners {
		add(AddServer, j.ID)
		if p.Target.votes(ServerOf(j.ID)) {
			add(GiveVote, j.ID)
		}
	}
	steps = slices.Concat(by[DropServer], by[AddServer], deadVotes, by[GiveVote])
	if !p.targetLive() {
		return steps, false
	}
	return slices.Concat(steps, by[TakeVote], by[HandOver], lastVote), true
}

// displaced reports whether a joining server has the number or the address of s.
func (p *Change) displaced(s raft.Server) bool {
	return slices.ContainsFunc(p.Joiners, func(j raft.Server) bool {
		return ServerOf(j.ID) == ServerOf(s.ID) || j.Address == s.Address && p.Target.Member(ServerOf(s.ID)) == nil
	})
}

// targetLive reports whether more than half of the target's voters are live.
func (p *Change) targetLive() bool {
	live := make(map[uint64]bool)
	for _, s := range p.Servers {
		live[ServerOf(s.ID)] = live[ServerOf(s.ID)] || p.Live[s.ID]
	}
	for _, j := range p.Joiners {
		live[ServerOf(j.ID)] = true
	}
	n := 0
	for _, m := range p.Target.Members {
		if !m.Observer && live[m.ID] {
			n++
		}
	}
	return n > p.Target.Voters()/2
}

// Majority reports whether more than half of the voters are live.
func Majority(servers []raft.Server, live map[raft.ServerID]bool) bool {
	voters, up := 0, 0
	for _, s := range servers {
		if s.Suffrage == raft.Voter {
			voters++
			if live[s.ID] {
				up++
			}
		}
	}
	return up > voters/2
}

// After returns the configuration that results from applying the step to servers.
func (s Step) After(servers []raft.Server) []raft.Server {
	next := slices.Clone(servers)
	i := slices.IndexFunc(next, func(x raft.Server) bool { return x.ID == s.ID })
	switch {
	case s.Kind == AddServer && i < 0:
		return append(next, raft.Server{ID: s.ID, Suffrage: raft.Nonvoter})
	case i < 0:
	case s.Kind == DropServer:
		return slices.Delete(next, i, i+1)
	case s.Kind == TakeVote:
		next[i].Suffrage = raft.Nonvoter
	case s.Kind == GiveVote:
		next[i].Suffrage = raft.Voter
	}
	return next
}
