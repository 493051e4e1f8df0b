package raftfsm

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// others is what a Node needs to know of, and tell, the rest of its ensemble.
// There are two: alone, and that of a member (formation.go and the files it
// names). It is set before Raft starts.
//
// How a member uses the rest of this package:
//
//   - startEnsemble opens the state (openState), sets Node.transport and
//     Node.others, and starts Raft (startRaft).
//   - On a server that leads, runs of other servers go to Node.remote.add with
//     the incarnation that their stream belongs to.
//   - On a server that follows, Node.follow makes a forwarder the way that this
//     server's own commands take; unfollow ends that. Both run on the control
//     goroutine, where Node.do puts them.
//   - Node.touch reports sessions that another server heard of.
//   - Node.setStatus, on the control goroutine, publishes what this server is.
type others interface {
	// start brings the server up. It returns before a member of an ensemble has
	// found its place: that takes as long as it takes the others to come.
	start() error

	// leading completes the first entry of a leadership that begins: flags and
	// config text. opened is called when it was applied, closed when that
	// leadership ends, whether it was opened or not. All three are called on the
	// control goroutine.
	leading(s *leaderStart)
	opened(*leadership)
	closed(reason error)

	// led is called on the control goroutine when the leaderStart of another
	// server was applied here. Commands sent to any incarnation before that one
	// and not applied by now never will be: they have been given up. noServer
	// means that a snapshot was restored which holds that leaderStart.
	led(server, incarnation uint64)

	// configured is called on Raft's state machine goroutine with every
	// configuration that takes effect.
	configured(index uint64, conf raft.Configuration)

	// storing is called on Raft's main goroutine with the entries that are about
	// to be stored, checksums and all.
	storing(entries []*raft.Log)

	// applied is called on the state machine's with the index of every entry applied.
	applied(index uint64)

	// patience is how long the proposer of a server that leads waits behind an entry
	// for those whom it has answered (returners).
	patience() time.Duration

	// confirmed returns the newest time at which a leader that could commit is
	// known to have heard of this server's sessions.
	confirmed() time.Time
	// fresh returns a time such that this server has applied everything that any
	// server had acknowledged by then.
	fresh() time.Time
	// electing says whether this server hears nothing from a leader, and a quorum of
	// servers has answered it so lately that there may be a new one soon.
	electing() bool
	// confirmedRecently says whether this server, which leads, was in touch with
	// a quorum so recently that nobody else can be leading.
	confirmedRecently() bool

	// barrier returns when this server has applied everything that was
	// acknowledged anywhere before the call.
	barrier(ctx context.Context) error

	// behind says of every other server that is not known to know a behaviour
	// level why not.
	behind(level uint32) []string

	// live appends sessions that are alive although neither the Handler nor the
	// intake knows.
	live(dst []int64) []int64

	// touched is called on the server that leads with the sessions that it has
	// taken note of as alive: should it turn out not to lead any more, the next
	// leader has to be told of them.
	touched(ids []int64)

	// status fills in the Role and what else depends on the ensemble, for a
	// server that leads or looks for a leader.
	status(s *Status, leads bool)

	// ownLine returns this server's line in the membership, nil while there is none.
	ownLine() *Member

	// learners returns the servers that follow this one, which leads.
	learners() []Learner

	// transfer hands the lead to another server.
	transfer(ctx context.Context) error

	// settle is called before Raft is shut down for good: a lead is handed to
	// another server, and no further Raft instance is started.
	settle()
	// silence ends all talk with other servers, without waiting: this server
	// has failed. close does the same when the Node is closed, after Raft was
	// shut down, and waits for its goroutines.
	silence()
	close()
}

// alone is the others of a server that stands alone.
type alone struct{ n *Node }

var _ others = alone{}

func (alone) leading(s *leaderStart)                { s.flags = flagStandalone }
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
func (alone) silence()                              {}
func (alone) close()                                {}

// patience implements others: none, unless Gather asks for it.
func (a alone) patience() time.Duration {
	if a.n.gathers.Load() {
		return gatherWithin
	}
	return 0
}

// opened implements others: whoever followed the last member of an ensemble
// follows nobody any more.
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
