package raftfsm

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// peers is what a Node needs to know about the rest of its ensemble, and to tell it.
// There are two implementations: alone, and ensemble.Ensemble for a member. It is set
// before Raft starts.
type peers interface {
	// start brings the server up. It returns before a member has found its ensemble,
	// because that can take as long as the other servers are missing.
	start() error

	// leading completes the first entry of a new leadership: flags and config text.
	// opened is called when that entry was applied. closed is called when that
	// leadership ends, whether it was opened or not. All three run on the control
	// goroutine.
	leading(s *command.LeaderStart)
	opened(incarnation, term uint64, began time.Time)
	closed()

	// led is called on the control goroutine when the LeaderStart of another server was
	// applied here. Commands that were sent to an earlier incarnation and are not
	// applied by now never will be, and have been given up. NoServer means that the
	// LeaderStart came with a restored snapshot.
	led(server, incarnation uint64)

	// configured is called on Raft's state machine goroutine with each configuration
	// that takes effect, storing on Raft's main goroutine with the entries about to be
	// stored, including their checksums, and applied on Raft's state machine goroutine
	// with the index of each entry applied.
	configured()
	storing(entries []*raft.Log)
	applied(index uint64)

	// confirmed, fresh, electing and barrier are Node.Confirmed, Fresh, Electing and
	// Barrier. confirmedRecently reports whether this leader was in touch with a quorum so
	// recently that no other server can be leading.
	confirmed() time.Time
	fresh() time.Time
	electing() bool
	confirmedRecently() bool
	barrier(ctx context.Context) error

	// behind returns, for each other server that is not known to know a behaviour
	// level, the reason.
	behind(level uint32) []string

	// live appends sessions that are alive without the Handler or the intake knowing
	// it. touched is called on the leader with the sessions that it has noted as alive. If
	// it turns out to lead no longer, it must report them to the next leader.
	live(dst []int64) []int64
	touched(ids []int64)

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
	learners() []ensLearner
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

// member returns this server's configuration as a member of an ensemble.
func (c *Config) member(raftLog hclog.Logger) ensConfig {
	m := ensConfig{
		ID: c.ID, Members: c.Members, ClientPort: c.ClientPort, Level: c.newest, Memory: c.Memory, Dirs: c.dirs(),
		Network: c.Network, SASL: (*quorum.SASL)(c.SASL), ListenAll: c.ListenAll, ListenHost: c.ListenHost,
		TickTime: c.TickTime, SyncLimit: c.SyncLimit, Policy: c.Policy, Logger: c.Logger, RaftLog: raftLog,
	}
	if t := c.TLS; t != nil {
		m.TLS = &quorum.TLS{
			Config: t.Config, DialPlain: t.DialPlain, AcceptPlain: t.AcceptPlain, VerifyHost: t.VerifyHost, VerifyCaller: t.VerifyCaller,
			ReverseDNS: t.ReverseDNS, Detect: t.Detect,
		}
	}
	return m
}

// environment returns the environment of an ensemble that n belongs to.
//
// An ensemble opens the state, sets Node.transport and starts Raft. On the leader, runs of
// other servers go to Node.remote with the incarnation that their stream belongs to. On a
// follower, follow sends this server's own commands through a propose.Stream; unfollow ends
// that. Both run on the control goroutine, where Node.do puts them.
func (n *Node) environment() *environment {
	return &environment{
		cfg: n.cfg.member(raftLogger(n.log)), identity: &n.identity, machine: n.machine, counters: &n.numbers.peers,
		intake: n.intake, remote: n.remote, checkers: &n.checkers,
		openState: n.openState, stores: func() ensStores { return n.stores },
		startRaft: func(trans raft.Transport, bootstrap raft.Configuration) error {
			n.transport = trans
			return n.startRaft(bootstrap)
		},
		stopRaft: func() { shutDown(n.raftNow(), n.transport) },
		raftNow:  n.raftNow, reload: n.reload,
		do: n.do, background: n.background.Go, fail: n.fail, live: n.cfg.Handler.Live, touch: n.touch, proposeOwn: n.proposeOwn,
		leads:   func() bool { return n.incarnation.Load() != 0 },
		halted:  func() bool { return n.halted },
		status:  func() ensStatus { return memberStatus(n.Status()) },
		publish: func(s ensStatus) { n.setStatus(nodeStatus(s)) },
		looking: func(reason string) ensStatus { return memberStatus(n.statusNow(false, reason)) },
		idle:    func() bool { return n.lead == nil && !n.halted },
		follow:  n.follow,
		unfollow: func(s propose.Stream, reason error) {
			if f := n.forwarding; f != nil && f.To == s {
				n.unfollow(reason)
			}
		},
	}
}

// roles are the roles of a member.
var roles = map[ensRole]Role{ensLooking: Looking, ensLeader: Leader, ensFollower: Follower, ensObserver: Observer}

// nodeStatus returns the status that a member publishes.
func nodeStatus(s ensStatus) Status {
	return Status{Role: roles[s.Role], Leader: s.Leader, Epoch: s.Epoch, Serving: s.Serving, Reason: s.Reason}
}

// memberStatus returns what nodeStatus was called with.
func memberStatus(s Status) ensStatus {
	m := ensStatus{Leader: s.Leader, Epoch: s.Epoch, Serving: s.Serving, Reason: s.Reason}
	switch s.Role {
	case Leader:
		m.Role = ensLeader
	case Follower:
		m.Role = ensFollower
	case Observer:
		m.Role = ensObserver
	}
	return m
}
