package raftfsm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
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
func (alone) IsMember() bool                      { return false }
func (a alone) Reconfig(c *command.Command) error { return a.n.local.Propose(c, false) }
func (alone) FileWritten(*membership.List)        {}
func (alone) FileDiffers() string                 { return "" }
func (alone) RefusedMessages() int64              { return 0 }
func (alone) Silence()                            {}
func (alone) Close()                              {}

// Opened implements peers. It removes the servers that followed the last member of a
// former ensemble.
func (a alone) Opened(uint64, uint64, time.Time) {
	r := a.n.raftNow()
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.ID == a.n.identity.RaftID {
			continue
		}
		a.n.background.Go(func() {
			if err := r.RemoveServer(s.ID, 0, ensemble.ChangeTimeout).Error(); err != nil {
				a.n.log.Debug("a former member could not be removed", "server", string(s.ID), "err", err)
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
func (a alone) Start() error {
	n := a.n
	addr, transport := raft.NewInmemTransport(datadir.StandaloneAddr)
	transport.Connect(addr, transport)
	n.transport = transport
	if err := n.openState(); err != nil {
		return err
	}
	only := raft.Server{Suffrage: raft.Voter, ID: n.identity.RaftID, Address: addr}
	if err := n.startRaft(raft.Configuration{Servers: []raft.Server{only}}); err != nil {
		return err
	}
	return n.leadAlone()
}

// leadAlone makes this server the leader immediately instead of after an election
// timeout. That bypasses all safeguards of an election, so it first checks that there
// is no other voter. Otherwise an operator who configures a single server on a member's
// directory would depose a healthy leader.
func (n *replica) leadAlone() error {
	servers := n.raftNow().GetConfiguration().Configuration().Servers
	voters := slices.Clone(servers)
	voters = slices.DeleteFunc(voters, func(s raft.Server) bool { return s.Suffrage != raft.Voter })
	if len(voters) != 1 || voters[0].ID != n.identity.RaftID {
		err := fmt.Errorf("%s belongs to a member of an ensemble of %d servers (%v), but the configuration names this server alone",
			n.cfg.LogDir, len(servers), servers)
		return errors.Join(err, n.raftNow().Shutdown().Error())
	}
	var resp raft.TimeoutNowResponse
	err := n.transport.TimeoutNow(voters[0].ID, n.transport.LocalAddr(), &raft.TimeoutNowRequest{
		RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(voters[0].ID), Addr: []byte(n.transport.LocalAddr())},
	}, &resp)
	if err != nil { // no harm: the election timeout has the same effect
		n.log.Warn("could not take the lead at once", "err", err)
	}
	return nil
}
