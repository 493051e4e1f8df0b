package raftfsm

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
)

// others is what a Node needs to know about the rest of its ensemble, and to tell it.
// There are two implementations: alone, and ensemble for a member. It is set before
// Raft starts.
//
// How a member uses the rest of this package:
//
//   - ensemble opens the state (openState), sets Node.transport and starts Raft
//     (startRaft).
//   - On the leader, runs of other servers go to Node.remote.add with the incarnation
//     that their stream belongs to.
//   - On a follower, Node.follow sends this server's own commands through a propose.Stream;
//     unfollow ends that. Both run on the control goroutine, where Node.do puts them.
//   - Node.touch reports sessions that another server heard from.
//   - Node.setStatus, on the control goroutine, publishes this server's status.
type others interface {
	// start brings the server up. It returns before a member has found its ensemble,
	// because that can take as long as the other servers are missing.
	start() error

	// leading completes the first entry of a new leadership: flags and config text.
	// opened is called when that entry was applied. closed is called when that
	// leadership ends, whether it was opened or not. All three run on the control
	// goroutine.
	leading(s *command.LeaderStart)
	opened(*leadership)
	closed(reason error)

	// led is called on the control goroutine when the LeaderStart of another server was
	// applied here. Commands that were sent to an earlier incarnation and are not
	// applied by now never will be, and have been given up. NoServer means that the
	// LeaderStart came with a restored snapshot.
	led(server, incarnation uint64)

	// configured is called on Raft's state machine goroutine with each configuration
	// that takes effect.
	configured(index uint64, conf raft.Configuration)

	// storing is called on Raft's main goroutine with the entries about to be stored,
	// including their checksums.
	storing(entries []*raft.Log)

	// applied is called on Raft's state machine goroutine with the index of each entry
	// applied.
	applied(index uint64)

	// confirmed returns the newest time at which a leader that could commit is
	// known to have heard of this server's sessions.
	confirmed() time.Time
	// fresh returns a time such that this server has applied everything that any
	// server had acknowledged by then.
	fresh() time.Time
	// electing reports whether this server hears from no leader, but a quorum of
	// servers has answered it so recently that there may be a new leader soon.
	electing() bool
	// confirmedRecently reports whether this leader was in touch with a quorum so
	// recently that no other server can be leading.
	confirmedRecently() bool

	// barrier returns when this server has applied everything that any server had
	// acknowledged before the call.
	barrier(ctx context.Context) error

	// behind returns, for each other server that is not known to know a behaviour
	// level, the reason.
	behind(level uint32) []string

	// live appends sessions that are alive without the Handler or the intake knowing
	// it.
	live(dst []int64) []int64

	// touched is called on the leader with the sessions that it has noted as alive. If
	// it turns out to lead no longer, it must report them to the next leader.
	touched(ids []int64)

	// status fills in the Role and everything else that depends on the ensemble, for a
	// server that leads or looks for a leader.
	status(s *Status, leads bool)

	// isMember reports whether this server is a member of an ensemble.
	isMember() bool
	// reconfig proposes a client's reconfig, after the ensemble has carried it out.
	reconfig(c *command.Command) error
	// fileWritten says which list the configuration file has now. fileDiffers returns
	// the reconfig that would make the membership match that file, "" for none.
	fileWritten(m *membership.List)
	fileDiffers() string
	// refusedMessages returns the number of Raft messages that this server has refused.
	refusedMessages() int64

	// ownLine returns this server's line in the membership, or nil while there is none.
	ownLine() *membership.Member

	// learners returns the servers that follow this leader.
	learners() []Learner

	// transfer hands leadership to another server.
	transfer(ctx context.Context) error

	// settle is called before Raft is shut down for good. It hands leadership to
	// another server, and no further Raft instance starts after it.
	settle()
	// silence ends all communication with other servers without waiting, because this
	// server has failed. close does the same when the Node is closed, after Raft was
	// shut down, and waits for its goroutines.
	silence()
	close()
}

// alone implements others for a standalone server.
type alone struct{ n *Node }

var _ others = alone{}

func (alone) leading(s *command.LeaderStart)        { s.Flags = command.FlagStandalone }
func (alone) closed(error)                          {}
func (alone) led(uint64, uint64)                    {}
func (alone) configured(uint64, raft.Configuration) {}
func (alone) storing([]*raft.Log)                   {}
func (alone) applied(uint64)                        {}
func (a alone) confirmed() time.Time                { return a.n.cfg.Now() }
func (a alone) fresh() time.Time                    { return a.n.cfg.Now() }
func (alone) electing() bool                        { return false }
func (alone) confirmedRecently() bool               { return true }
func (alone) behind(uint32) []string                { return nil }
func (alone) live(dst []int64) []int64              { return dst }
func (alone) transfer(context.Context) error        { return nil }
func (alone) touched([]int64)                       {}
func (alone) settle()                               {}
func (alone) isMember() bool                        { return false }
func (a alone) reconfig(c *command.Command) error   { return a.n.intake.Propose(c, false) }
func (alone) fileWritten(*membership.List)          {}
func (alone) fileDiffers() string                   { return "" }
func (alone) refusedMessages() int64                { return 0 }
func (alone) silence()                              {}
func (alone) close()                                {}

// opened implements others. It removes the servers that followed the last member of a
// former ensemble.
func (a alone) opened(*leadership) {
	r := a.n.raftNow()
	for _, s := range r.GetConfiguration().Configuration().Servers {
		if s.ID == a.n.identity.RaftID {
			continue
		}
		a.n.background.Go(func() {
			if err := r.RemoveServer(s.ID, 0, changeTimeout).Error(); err != nil {
				a.n.log.Debug("a former member could not be removed", "server", string(s.ID), "err", err)
			}
		})
	}
}

func (a alone) status(s *Status, leads bool) {
	if leads {
		s.Role = Standalone
	}
}
