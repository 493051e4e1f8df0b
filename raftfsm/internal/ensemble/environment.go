package ensemble

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

// Config is the operator's configuration of a member.
type Config struct {
	ID         uint64
	Members    []membership.Member // the list of the configuration file
	NeedsAll   bool                // empty servers form an ensemble only once all listed voters run, and only servers that run join it
	ClientPort int                 // 0 if unknown
	Level      uint32              // the highest behaviour level that this server knows

	Memory bool         // keep everything in memory
	Dirs   datadir.Dirs // unless Memory is set

	Network    quorum.Network
	TLS        *quorum.TLS  // without Hosts; nil: plaintext
	SASL       *quorum.SASL // nil: none
	ListenAll  bool         // listen on all addresses of this machine
	ListenHost string       // host to listen on; empty: the host that the others dial

	TickTime  time.Duration
	SyncLimit int // ticks
	Policy    tree.Policy
	Logger    *slog.Logger
	RaftLog   hclog.Logger // for the library's lines
}

// Environment is the only interface from an ensemble to the server that it belongs to.
// Every function is set.
type Environment struct {
	Config   Config
	Identity *datadir.Identity // changed by become only, before Raft runs
	Machine  *apply.Machine
	Counters *Counters
	Local    *propose.LocalRuns
	Remote   *propose.RemoteRuns
	Checkers *command.Checkers

	// OpenState opens the stores and loads the newest snapshot. Stores returns the stores
	// after that.
	OpenState func() error
	Stores    func() Stores
	// StartRaft starts a Raft instance on the opened state, and StopRaft ends it. RaftNow
	// returns the current one, or nil; Reload changes its settings.
	StartRaft func(raft.Transport, raft.Configuration) error
	StopRaft  func()
	RaftNow   func() *raft.Raft
	Reload    func(*raft.Raft, func(*raft.ReloadableConfig)) error

	Do         func(f func())            // runs f later on the control goroutine
	Background func(f func())            // runs f on a goroutine that Close waits for
	Fail       func(err error)           // stops the server
	Live       func(dst []int64) []int64 // appends the sessions that clients of this server keep alive
	Touch      func(sessions []int64)    // reports sessions that another server has heard from
	ProposeOwn func(*command.Command)    // proposes a command of the leader; never blocks
	Leads      func() bool               // this server leads, whether its leadership is open or not
	Halted     func() bool               // this server has failed
	Status     func() Status             // as published
	Control    Control
}

// Control contains the functions that only the control goroutine may call.
type Control struct {
	Publish  func(Status)                // publishes a new status
	Looking  func(reason string) Status  // the status of a server without a leader
	Idle     func() bool                 // this server neither leads nor has failed
	Follow   func(propose.Stream)        // sends this server's commands on a stream from now on
	Unfollow func(propose.Stream, error) // gives up the commands on the stream, if it is the current one
}

// Stores provides the log, the vote and the snapshots of this server.
type Stores interface {
	datadir.Stores
	Hanging() time.Duration // how long the current write to the log's disk has been waiting
}

// Role is a server's role in its ensemble.
type Role uint8

// The roles. A member is never Standalone.
const (
	Looking Role = iota
	Standalone
	Leader
	Follower
	Observer
)

// Status is a snapshot of a server's state, as it publishes it.
type Status struct {
	Role    Role
	Leader  uint64 // id; meaningless while Role is Looking
	Epoch   uint32
	Serving bool // caught up under a leader: the server may answer clients
	Reason  string
}
