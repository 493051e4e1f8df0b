package raftfsm

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
)

// peers is a Node's interface to the rest of its ensemble.
// There are two implementations: alone, and ensemble.Ensemble for a member. It is set
// before Raft starts.
type peers interface {
	// Start brings the server up. It returns before a member has found its ensemble,
	// because that may have to wait for the other servers.
	Start() error

	// Begin completes the first entry of a new leadership: flags and config text.
	// Opened is called when that entry was applied. Closed is called when that
	// leadership ends, whether it was opened or not. All three run on the control
	// goroutine.
	Begin(s *command.LeaderStart)
	Opened(incarnation, term uint64, began time.Time)
	Closed()

	// Led is called on the control goroutine when the LeaderStart of another server was
	// applied here. Commands that were sent to an earlier incarnation and are not
	// applied by now never will be, and have been given up. NoServer means that the
	// LeaderStart came with a restored snapshot.
	Led(server, incarnation uint64)

	// Configured is called on Raft's state machine goroutine with each configuration
	// that becomes effective, Storing on Raft's main goroutine with the entries about
	// to be stored, including their checksums, and Applied on Raft's state machine
	// goroutine with the index of each entry applied.
	Configured()
	Storing(entries []*raft.Log)
	Applied(index uint64)

	// Confirmed, Fresh, Electing and Barrier are Node.Confirmed, Fresh, Electing and
	// Barrier. ConfirmedRecently reports whether this leader was in touch with a quorum so
	// recently that no other server can be leading.
	Confirmed() time.Time
	Fresh() time.Time
	Electing() bool
	ConfirmedRecently() bool
	Barrier(ctx context.Context) error

	// Lacking returns the other servers that may not know a behaviour level, each with
	// the reason.
	Lacking(level uint32) []string

	// AppendLive appends the live sessions that neither the Handler nor the local runs
	// know. Touched is called on the leader with the sessions that it has noted as
	// alive. If it no longer leads, it must report them to the next leader.
	AppendLive(dst []int64) []int64
	Touched(ids []int64)

	// Reconfig proposes a client's reconfig, after the ensemble has carried it out.
	Reconfig(c *command.Command) error
	// FileWritten tells the ensemble which list the configuration file has now.
	// FileDiffers returns the reconfig that would make the membership match that file, ""
	// for none.
	FileWritten(m *membership.List)
	FileDiffers() string
	// RefusedMessages returns the number of Raft messages that this server has refused.
	RefusedMessages() int64
	// OwnLine returns this server's line in the membership, or nil while there is none.
	OwnLine() *membership.Member
	// Learners returns the servers that follow this leader.
	Learners() []ensemble.Learner
	// Transfer hands leadership to another server.
	Transfer(ctx context.Context) error

	// Settle is called before Raft is shut down permanently. It hands leadership to
	// another server, and no further Raft instance starts after it.
	Settle()
	// Silence ends all communication with other servers without waiting, because this
	// server has failed. Close does the same when the Node is closed, after Raft was
	// shut down, and waits for its goroutines.
	Silence()
	Close()
}

// member returns this server's configuration as a member of an ensemble.
func (c *Config) member() ensemble.Config {
	m := ensemble.Config{
		ID: c.ID, Members: c.Members, NeedsAll: c.NeedsAll, ClientPort: c.ClientPort, Level: c.level, Memory: c.Memory, Dirs: c.dirs(),
		Network: c.Peers.Network, SASL: c.Peers.SASL, ListenAll: c.Peers.ListenAll, ListenHost: c.Peers.ListenHost,
		TickTime: c.TickTime, SyncLimit: c.SyncLimit, Policy: c.Policy, Logger: c.Logger, RaftLog: replica.RaftLogger(c.Logger),
	}
	if t := c.Peers.TLS; t != nil {
		m.TLS = &quorum.TLS{
			Config: t.Config, DialPlain: t.DialPlain, AcceptPlain: t.AcceptPlain, VerifyHost: t.VerifyHost, VerifyCaller: t.VerifyCaller,
			ReverseDNS: t.ReverseDNS, Detect: t.Detect,
		}
	}
	return m
}

// environment returns the environment of an ensemble that n belongs to.
//
// An ensemble opens the state and starts Raft. On the leader, runs of
// other servers go to Node.remote with the incarnation that their stream belongs to. On a
// follower, follow sends this server's own commands through a propose.Stream; unfollow ends
// that. Both run on the control goroutine, where mailbox.do puts them.
func environment(n *Node) *ensemble.Environment {
	r := n.replica
	return &ensemble.Environment{
		Config: n.cfg.member(), Identity: &r.Identity, Machine: r.Machine, Counters: &n.numbers.peers,
		Local: n.local, Remote: n.remote, Checkers: &n.checkers,
		OpenState: r.Open, Stores: func() ensemble.Stores { return r.Stores() },
		StartRaft: r.Start, StopRaft: r.EndRaft, RaftNow: r.Raft, Reload: r.Reload,
		Do: n.mail.do, Background: n.background.Go, Fail: n.mail.fail, Live: n.cfg.Handler.Live, ProposeOwn: n.proposeOwn,
		Touch:  func(sessions []int64) { n.mail.touched(sessions, n.cfg.Now()) },
		Leads:  func() bool { return n.incarnation.Load() != 0 },
		Halted: func() bool { return n.control.halted },
		Status: n.Status,
		Control: ensemble.Control{
			Publish: n.control.publish,
			Looking: func(reason string) Status { return n.control.statusNow(false, reason) },
			Idle:    func() bool { return n.control.lead == nil && !n.control.halted },
			Follow:  n.control.follow,
			Unfollow: func(s propose.Stream, reason error) {
				if f := n.control.forwarding; f != nil && f.To == s {
					n.control.unfollow(reason)
				}
			},
		},
	}
}
