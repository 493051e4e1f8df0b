package raftfsm

import (
	"log/slog"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/tree"
)

// ensConfig is what the operator has set for a member.
type ensConfig struct {
	ID         uint64
	Members    []membership.Member // the list of the configuration file
	ClientPort int                 // 0 if unknown
	Level      uint32              // the highest behaviour level that this server knows

	Memory bool         // keep everything in memory
	Dirs   datadir.Dirs // unless Memory is set

	Network    quorum.Network
	TLS        *quorum.TLS  // without Hosts; nil: plaintext
	SASL       *quorum.SASL // nil: none
	ListenAll  bool         // listen on all addresses of this machine
	ListenHost string       // where to listen; empty: the host that the others dial

	TickTime  time.Duration
	SyncLimit int // ticks
	Policy    tree.Policy
	Logger    *slog.Logger
	RaftLog   hclog.Logger // for the library's lines
}

// environment is what an ensemble needs from the server that it belongs to. The ensemble
// uses nothing else of that server. Every function is set.
type environment struct {
	cfg      ensConfig
	identity *datadir.Identity // changed by become only, before Raft runs
	machine  *apply.Machine
	counters *ensCounters
	intake   *propose.Intake
	remote   *propose.RemoteRuns
	checkers *command.Checkers

	// openState opens the stores and loads the newest snapshot. stores returns the stores
	// after that.
	openState func() error
	stores    func() ensStores
	// startRaft starts a Raft instance on the opened state, and stopRaft ends it. raftNow
	// returns the current one, or nil; reload changes its settings.
	startRaft func(raft.Transport, raft.Configuration) error
	stopRaft  func()
	raftNow   func() *raft.Raft
	reload    func(*raft.Raft, func(*raft.ReloadableConfig)) error

	do         func(f func())            // runs f later on the control goroutine
	background func(f func())            // runs f on a goroutine that Close waits for
	fail       func(err error)           // stops the server
	live       func(dst []int64) []int64 // appends the sessions that clients of this server keep alive
	touch      func(sessions []int64)    // reports sessions that another server has heard from
	proposeOwn func(*command.Command)    // proposes a command of the leader; never blocks
	leads      func() bool               // this server has begun to lead, and has not lost the lead yet
	halted     func() bool               // this server has failed
	status     func() ensStatus          // as published

	// For the control goroutine only.
	publish  func(ensStatus)               // publishes a new status
	looking  func(reason string) ensStatus // the status of a server without a leader
	idle     func() bool                   // this server neither leads nor has failed
	follow   func(propose.Stream)          // sends this server's commands on a stream from now on
	unfollow func(propose.Stream, error)   // gives up the commands on the stream, if it is the current one
}

// ensStores holds the log, the vote and the snapshots of this server.
type ensStores interface {
	datadir.Stores
	Hanging() time.Duration // how long the current write to the log's disk has been waiting
}

// ensRole is a server's role in its ensemble.
type ensRole uint8

// The roles.
const (
	ensLooking ensRole = iota
	ensLeader
	ensFollower
	ensObserver
)

// ensStatus is what this server publishes about itself.
type ensStatus struct {
	Role    ensRole
	Leader  uint64 // id; meaningless while Role is Looking
	Epoch   uint32
	Serving bool // caught up under a leader: the server may answer clients
	Reason  string
}
