package ensemble

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// Learner is the leader's view of another server.
type Learner struct {
	ID       uint64
	Addr     string // of its quorum port
	Observer bool
	Synced   bool // it has followed this leader within syncLimit ticks and, if it is a participant, votes
}

// Learners returns the servers that follow this one. It returns none unless this server
// leads.
func (e *Ensemble) Learners() []Learner {
	r, trans := e.env.RaftNow(), e.transportNow()
	if r == nil || trans == nil || e.leadNow() == nil {
		return nil
	}
	term, limit := r.CurrentTerm(), time.Duration(e.env.Config.SyncLimit)*e.env.Config.TickTime
	var found []Learner
	members := e.replicated()
	for _, s := range r.GetConfiguration().Configuration().Servers {
		id := membership.ServerOf(s.ID)
		if id == e.self.ID {
			continue
		}
		contact, observes := trans.Contact(term, s.ID), members.Observes(s)
		// A participant without a vote is still catching up. An operator who believes
		// that it is synced and stops another server would stop the ensemble.
		counts := observes || s.Suffrage == raft.Voter
		found = append(found, Learner{
			ID: id, Addr: string(s.Address), Observer: observes,
			Synced: counts && !contact.IsZero() && time.Since(contact) < limit,
		})
	}
	return found
}
