package raftfsm

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// alone implements peers for a standalone server.
type alone struct{ n *Node }

var (
	_ peers = alone{}
	_ peers = (*ensemble.Ensemble)(nil)
)

func (alone) Begin(s *command.LeaderStart)        { s.Flags = command.FlagStandalone }
func (alone) Closed()                             {}
func (alone) Led(uint64, uint64)                  {}
func (alone) Configured()                         {}
func (alone) Storing([]*raft.Log)                 {}
func (alone) Applied(uint64)                      {}
func (a alone) Confirmed() time.Time              { return a.n.cfg.Now() }
func (a alone) Fresh() time.Time                  { return a.n.cfg.Now() }
func (alone) Electing() bool                      { return false }
func (alone) ConfirmedRecently() bool             { return true }
func (alone) Lacking(uint32) []string             { return nil }
func (alone) AppendLive(dst []int64) []int64      { return dst }
func (alone) Transfer(context.Context) error      { return nil }
func (alone) Touched([]int64)                     {}
func (alone) Settle()                             {}
func (a alone) Reconfig(c *command.Command) error { return a.n.local.Propose(c, false) }
func (alone) FileWritten(*membership.List)        {}
func (alone) FileDiffers() string                 { return "" }
func (alone) RefusedMessages() int64              { return 0 }
func (alone) Silence()                            {}
func (alone) Close()                              {}

// Opened implements peers. It removes the servers that followed the last member of a
// former ensemble.
func (a alone) Opened(uint64, uint64, time.Time) {
	r := a.n.replica.Raft()
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.ID == a.n.replica.Identity.RaftID {
			continue
		}
		a.n.background.Go(func() {
			if err := r.RemoveServer(s.ID, 0, ensemble.ChangeTimeout).Error(); err != nil {
				a.n.cfg.Logger.Debug("could not remove a former member", "server", string(s.ID), "err", err)
			}
		})
	}
}

// Barrier implements peers. A standalone server has applied all writes that it has
// acknowledged.
func (alone) Barrier(context.Context) error { return nil }

// Learners implements peers.
func (alone) Learners() []ensemble.Learner { return nil }

// OwnLine implements peers.
func (alone) OwnLine() *Member { return nil }

// Start starts a server that is the only voter.
func (a alone) Start() error { return a.n.replica.StartAlone() }
