package raftfsm

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// Learner is another server as the leader sees it.
type Learner struct {
	ID       uint64
	Addr     string // of its quorum port
	Observer bool
	Synced   bool // it has followed this leader within syncLimit ticks and, if it is a participant, votes
}

// Learners returns the servers that follow this one. It returns none unless this server
// leads.
func (n *Node) Learners() []Learner { return n.others.learners() }

// learners implements others.
func (alone) learners() []Learner { return nil }

// learners implements others.
func (e *ensemble) learners() []Learner {
	r, trans := e.env.raftNow(), e.transportNow()
	if r == nil || trans == nil || e.leadNow() == nil {
		return nil
	}
	term, limit := r.CurrentTerm(), time.Duration(e.env.cfg.SyncLimit)*e.env.cfg.TickTime
	var found []Learner
	members := e.replicated()
	for _, s := range r.GetConfiguration().Configuration().Servers {
		id := membership.ServerOf(s.ID)
		if id == e.self.ID {
			continue
		}
		contact, observes := trans.Contact(term, s.ID), members.Observes(s)
		// A participant without a vote is still catching up. An operator who takes it
		// for synced and stops another server would stop the ensemble.
		counts := observes || s.Suffrage == raft.Voter
		found = append(found, Learner{
			ID: id, Addr: string(s.Address), Observer: observes,
			Synced: counts && !contact.IsZero() && time.Since(contact) < limit,
		})
	}
	return found
}

// ProposalSizes are the sizes in bytes of the log entries that this server has
// proposed, −1 before the first one, and the number of commands they held.
type ProposalSizes = propose.Sizes

// ProposalSizes returns the sizes so far.
func (n *Node) ProposalSizes() ProposalSizes { return n.proposed.Get() }
