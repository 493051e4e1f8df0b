package raftfsm

import (
	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
)

// environment is what an ensemble needs from the server that it belongs to. The ensemble
// uses nothing else of the Node.
type environment struct {
	cfg      *Config
	identity *datadir.Identity // changed by become only, before Raft runs
	machine  *apply.Machine
	numbers  *numbers
	intake   *propose.Intake
	remote   *propose.RemoteRuns
	checkers *command.Checkers

	// openState opens the stores and loads the newest snapshot. stores returns the stores
	// after that.
	openState func() error
	stores    func() stores
	// startRaft starts a Raft instance on the opened state. raftNow returns the current
	// one, or nil; reload changes its settings.
	startRaft func(raft.Transport, raft.Configuration) error
	raftNow   func() *raft.Raft
	reload    func(*raft.Raft, func(*raft.ReloadableConfig)) error

	do         func(f func())         // runs f later on the control goroutine
	background func(f func())         // runs f on a goroutine that Close waits for
	fail       func(err error)        // stops the server
	touch      func(sessions []int64) // reports sessions that another server has heard from
	proposeOwn func(*command.Command) // proposes a command of the leader; never blocks
	leads      func() bool            // this server has begun to lead, and has not lost the lead yet
	halted     func() bool            // this server has failed
	status     func() Status          // as published

	// For the control goroutine only.
	publish  func(Status)                // publishes a new status
	looking  func(reason string) Status  // the status of a server without a leader
	idle     func() bool                 // this server neither leads nor has failed
	follow   func(propose.Stream)        // sends this server's commands on a stream from now on
	unfollow func(propose.Stream, error) // gives up the commands on the stream, if it is the current one
}

// environment returns the environment of an ensemble that n belongs to.
func (n *Node) environment() *environment {
	return &environment{
		cfg: &n.cfg, identity: &n.identity, machine: n.machine, numbers: &n.numbers, intake: n.intake, remote: n.remote, checkers: &n.checkers,
		openState: n.openState, stores: func() stores { return n.stores },
		startRaft: func(trans raft.Transport, bootstrap raft.Configuration) error {
			n.transport = trans
			return n.startRaft(bootstrap)
		},
		raftNow: n.raftNow, reload: n.reload,
		do: n.do, background: n.background.Go, fail: n.fail, touch: n.touch, proposeOwn: n.proposeOwn,
		leads:  func() bool { return n.incarnation.Load() != 0 },
		halted: func() bool { return n.halted },
		status: n.Status, publish: n.setStatus,
		looking: func(reason string) Status { return n.statusNow(false, reason) },
		idle:    func() bool { return n.lead == nil && !n.halted },
		follow:  n.follow,
		unfollow: func(s propose.Stream, reason error) {
			if f := n.forwarding; f != nil && f.To == s {
				n.unfollow(reason)
			}
		},
	}
}
