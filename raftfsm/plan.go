package raftfsm

import (
	"slices"

	"github.com/hashicorp/raft"
)

// How a change of the membership becomes a sequence of single changes of Raft's
// configuration. plan is a pure function: it computes all steps from what the leader
// knows. The leader carries out the first one, looks again, and plans again. So the
// next plan accounts for a server that dies in the middle.
//
// Call a configuration live if more than half of its voters are live. Raft commits
// a change under the configuration that the change makes, and every later entry
// too. A step is therefore safe if the configuration after it is live.
//
// Let O be the present voters and T the voters of the target. The order is:
//
//  1. Remove servers whose disk or address another server has taken over. They
//     are not live.
//  2. Add servers that join, without a vote.
//  3. Take the votes of servers outside T that are not live.
//  4. Give votes to live servers of T.
//  5. Take the votes of live servers outside T, except the leader's.
//  6. If the leader is outside T, hand leadership to a voter of T. The next leader
//     takes the vote.
//
// Claim: if O and T are live, every configuration on the way is live.
//
//   - Steps 1 and 3 take dead voters away. If l of n voters are live and l > n/2,
//     then l > (n-1)/2.
//   - Step 2 does not change the voters.
//   - Step 4 adds live voters: if l > n/2, then l+1 > (n+1)/2.
//   - After step 4 all live servers of T vote, and every dead voter is a server of
//     T. There are more live servers of T than dead ones, so these voters are a
//     live configuration, with and without further live voters (step 5).
//   - Step 6 finds a live voter of T, because T is live and step 4 is done.
//
// If O or T is not live, no order works, since every order begins with O and ends
// with T. So plan refuses a change only if every other order would fail as well.
// Steps 1 to 4 need O alone to be live. They are also taken while T, as a list that
// is in force already, has lost its majority for the moment.
//
// A dead server of T that has no vote yet does not get one in the plan. It gets its
// vote when it is back, which is step 4 again. The claim covers that case: T counts
// such a server as dead, and the plan leaves out a dead voter.

// stepKind is the type of a step.
type stepKind uint8

const (
	dropServer stepKind = iota + 1 // remove a server from Raft's configuration
	addServer                      // add one without a vote
	takeVote
	giveVote
	handOver // leadership, to a voter of the target
)

// planStep is one change of Raft's configuration, or the transfer of leadership.
type planStep struct {
	kind stepKind
	id   raft.ServerID // the leader's for handOver
}

// planInput is everything that a plan depends on.
type planInput struct {
	servers []raft.Server // Raft's configuration
	target  *membership
	leader  raft.ServerID
	live    map[raft.ServerID]bool
	joiners []raft.Server // live members of the target that Raft's configuration does not have, by ServerID
}

// plan returns the steps to the target. ok is false if no order of steps to the target
// keeps a live majority of voters at all times. The steps are then those that are safe
// nevertheless.
func (p *planInput) plan() (steps []planStep, ok bool) {
	if !majority(p.servers, p.live) {
		return nil, false
	}
	var by [handOver + 1][]planStep
	add := func(kind stepKind, id raft.ServerID) { by[kind] = append(by[kind], planStep{kind, id}) }
	var deadVotes, lastVote []planStep
	for _, s := range p.servers {
		votes, shall := s.Suffrage == raft.Voter, p.target.votes(serverOf(s.ID))
		switch {
		case !p.live[s.ID] && p.displaced(s):
			add(dropServer, s.ID)
		case votes && !shall && s.ID == p.leader:
			add(handOver, s.ID)
			lastVote = append(lastVote, planStep{takeVote, s.ID})
		case votes && !shall && !p.live[s.ID]:
			deadVotes = append(deadVotes, planStep{takeVote, s.ID})
		case votes && !shall:
			add(takeVote, s.ID)
		case !votes && shall && p.live[s.ID]:
			add(giveVote, s.ID)
		}
	}
	for _, j := range p.joiners {
		add(addServer, j.ID)
		if p.target.votes(serverOf(j.ID)) {
			add(giveVote, j.ID)
		}
	}
	steps = slices.Concat(by[dropServer], by[addServer], deadVotes, by[giveVote])
	if !p.targetLive() {
		return steps, false
	}
	return slices.Concat(steps, by[takeVote], by[handOver], lastVote), true
}

// displaced reports whether a joining server has the number or the address of s.
func (p *planInput) displaced(s raft.Server) bool {
	return slices.ContainsFunc(p.joiners, func(j raft.Server) bool {
		return serverOf(j.ID) == serverOf(s.ID) || j.Address == s.Address && p.target.member(serverOf(s.ID)) == nil
	})
}

// targetLive reports whether more than half of the target's voters are live.
func (p *planInput) targetLive() bool {
	live := make(map[uint64]bool)
	for _, s := range p.servers {
		live[serverOf(s.ID)] = live[serverOf(s.ID)] || p.live[s.ID]
	}
	for _, j := range p.joiners {
		live[serverOf(j.ID)] = true
	}
	n := 0
	for _, m := range p.target.members {
		if !m.Observer && live[m.ID] {
			n++
		}
	}
	return n > p.target.voters()/2
}

// majority reports whether more than half of the voters are live.
func majority(servers []raft.Server, live map[raft.ServerID]bool) bool {
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

// after returns the configuration that results from applying the step to servers.
func (s planStep) after(servers []raft.Server) []raft.Server {
	next := slices.Clone(servers)
	i := slices.IndexFunc(next, func(x raft.Server) bool { return x.ID == s.id })
	switch {
	case s.kind == addServer && i < 0:
		return append(next, raft.Server{ID: s.id, Suffrage: raft.Nonvoter})
	case i < 0:
	case s.kind == dropServer:
		return slices.Delete(next, i, i+1)
	case s.kind == takeVote:
		next[i].Suffrage = raft.Nonvoter
	case s.kind == giveVote:
		next[i].Suffrage = raft.Voter
	}
	return next
}

// votes reports whether a server is a participant on the list.
func (m *membership) votes(id uint64) bool {
	s := m.member(id)
	return s != nil && !s.Observer
}
