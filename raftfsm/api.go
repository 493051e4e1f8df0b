package raftfsm

import (
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/propose"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/raftfsm/internal/restore"
	"github.com/zkgo/zkgo/storage"
	"github.com/zkgo/zkgo/tree"
)

// Member is one server of the ensemble.
type Member = membership.Member

// Bounds of a list of servers.
const (
	MaxServer          = membership.MaxServer          // the highest server id; the lowest is 0
	MaxListBytes       = membership.MaxListBytes       // of a list of servers and of a reconfig
	MaxServerAddresses = membership.MaxServerAddresses // alternative addresses of a server
	MaxHost            = membership.MaxHost            // bytes of a host
	MaxCallers         = ensemble.MaxCallers           // per server id, ServerIDs with remembered calling addresses
)

// Errors.
var (
	// ErrClosed is the error of all calls after Close.
	ErrClosed = propose.ErrClosed
	// ErrHasState reports directories that contain zkgo state, which is never replaced.
	ErrHasState = datadir.ErrHasState
	// ErrNoState reports directories that contain no zkgo state.
	ErrNoState = datadir.ErrNoState
)

// Errors of Replace.
var (
	// ErrRestoreUnknown reports that the state may have been replaced, or still be replaced
	// later.
	ErrRestoreUnknown = restore.ErrUnknown
	// ErrRestoreLevel reports that not every server supports restores.
	ErrRestoreLevel = restore.ErrLevel
	// ErrRestoreBusy reports that this server is already running another restore.
	ErrRestoreBusy = restore.ErrBusy
	// ErrRestoreNoLeader reports that nothing was changed, because there is no leader.
	ErrRestoreNoLeader = restore.ErrNoLeader
)

// SameAddress returns an error for each server that would have to listen for the other
// servers at another server's address.
func SameAddress(members []Member) error { return membership.SameAddress(members) }

// ValidHost reports whether a host contains only characters that a name or an address can
// have. It rejects quotes, and the bytes of letters outside ASCII.
func ValidHost(host string) bool { return membership.ValidHost(host) }

// Config configures a Node. The zero value of an optional field selects its default.
type Config struct {
	ID       uint64   // this server's id, 0 to MaxServer; 1 for a standalone server
	Members  []Member // the list of zoo.cfg; fewer than two voters and no observer: standalone,
	Ensemble bool     // unless Ensemble requests an ensemble of one (standaloneEnabled=false)
	// NeedsAll is set if the list names only running servers. Then empty servers form an
	// ensemble only once all listed voters run, and a reconfig adds only servers that are
	// connected.
	NeedsAll bool
	// ClientPort is this server's client port, 0 if unknown. A proposed reconfig uses it
	// for lines of the list that have no client part.
	ClientPort int

	Memory  bool       // keep everything in memory, no disk
	DataDir string     // snapshots, and the log unless Log.Dir is set
	FS      storage.FS // file system of the directories; default: the operating system's

	Log        Log        // the log and the snapshots
	Peers      Peers      // the connections to the other servers
	Containers Containers // the znodes that the leader deletes

	TickTime  time.Duration // default 2 s
	SyncLimit int           // ticks; default 5

	Policy tree.Policy // this server's switches, in force while it leads
	Full   func() bool // reports whether this server must refuse requests that need memory, on all servers while it leads; nil: never

	Now     func() time.Time // the clock for session timeouts, and the default of Wall; default time.Now
	Wall    func() time.Time // time of transactions; it may jump
	Logger  *slog.Logger     // default: discard
	Handler Handler
	// Stream gets the transactions as ZooKeeper encodes them, under the tree's lock; nil:
	// none is encoded. Txn gets the next transaction, and Jump reports that the state was
	// replaced.
	Stream interface {
		Txn(zxid int64, txn []byte)
		Jump(zxid int64)
	}

	open  func(*replica.Config) (replica.Stores, error) // opens the stores; tests inject faults
	level uint32                                        // the highest behaviour level that this code knows; tests change it
}

// Log configures the log and the snapshots of a server.
type Log struct {
	Dir     string         // default: the data directory
	Store   string         // "wal", the default, or "bolt"
	Bolt    storage.Format // boltlog.Format, for the Store "bolt"; nil: not included
	Segment int            // bytes per file of a "wal" log; default 32 MiB

	SnapCount    int   // transactions between snapshots; default 100,000
	SnapBytes    int64 // log bytes between snapshots; default 4 GiB
	SnapRetain   int   // snapshots kept; default 3
	SnapTrailing int   // log entries to keep before a snapshot; default: about 64 MiB
}

// SetDefaults sets the directory and the numbers that are not set. dataDir is the server's data directory.
func (l *Log) SetDefaults(dataDir string) {
	orDefault(&l.Dir, dataDir)
	orDefault(&l.SnapCount, defaults.SnapCount)
	orDefault(&l.SnapBytes, defaults.SnapBytes)
	orDefault(&l.SnapRetain, defaults.SnapRetain)
}

// Peers configures the connections to the other servers of the ensemble.
type Peers struct {
	Network    Network // default TCP
	TLS        *TLS    // nil: plaintext
	SASL       *SASL   // nil: no SASL authentication
	ListenAll  bool    // listen on all addresses of the machine (quorumListenOnAllIPs)
	ListenHost string  // host to listen on; default: the host that the others dial; ListenAll overrides it
}

// Containers configures how often a leader looks for containers and TTL znodes to delete,
// and how many it deletes.
type Containers struct {
	Interval     time.Duration // default 1 minute
	MaxPerMin    int           // default 10,000
	MaxNeverUsed time.Duration // default: a container that never had a child stays
}

// Network creates the listeners and the connections between servers. Addresses are
// host:port.
type Network = quorum.Network

// TLS configures TLS between the servers of an ensemble.
type TLS struct {
	// Config returns the configuration for the next handshake, in either role: the
	// certificate to show, and in ClientCAs the CAs that the other servers' certificates
	// are verified against. It is called for every handshake, on any goroutine. Its
	// VerifyConnection, if any, is called in either role, with the verified chains.
	Config func() *tls.Config
	// DialPlain makes this server call others in plaintext, for as long as some servers
	// don't use TLS yet. AcceptPlain makes it accept plaintext too.
	DialPlain, AcceptPlain bool
	// VerifyHost requires the certificate of a called server to name a host that the
	// membership or the configuration has for it. VerifyCaller requires the same of a
	// caller's certificate.
	VerifyHost, VerifyCaller bool
	// ReverseDNS also accepts a caller's certificate if it names a host that the caller's
	// address resolves to.
	ReverseDNS bool
	// Detect is the maximum wait for the first byte of a connection; default 5 s.
	Detect time.Duration
}

// SASL lets the servers of an ensemble prove to one another, with SASL DIGEST-MD5, that
// they know a password.
type SASL = quorum.SASL

// Command is an operation that a server proposes to the ensemble. Propose copies its
// input, so the caller may reuse Body, IDs and Prints after it returns.
type Command = command.Command

// Kind is the kind of a Command.
type Kind = command.Kind

// The kinds of command that a server proposes, and the kinds that it only sees in
// Applied.
const (
	KindRequest = command.KindRequest // a client's write, Op and Body
	KindAttach  = command.KindAttach  // create a session (Session 0) or attach to one
	KindSync    = command.KindSync    // no effect, no zxid: orders later reads after everything committed

	// KindReconfigDone reports a change of membership that no client asked for.
	KindReconfigDone = command.KindReconfigDone
)

// Applied is the outcome of one command of the log. It and everything it points to are
// valid only during the call that it is passed to.
type Applied = command.Applied

// Waiter waits for a command that this server proposed. Its method Applied gets the
// outcome, under the same rules as Handler.Applied.
type Waiter = command.Waiter

// Handler is the interface through which a Node calls the server. Applied and Jumped
// are called with the tree's write lock held, on the one goroutine that applies the
// log. No method may block or call Propose.
type Handler interface {
	// Applied is called for every command, in log order, on every server. Before it
	// returns, Applied fires the events, then calls a.Waiter.Applied, if there is a
	// Waiter. That answers the client, then runs the reads queued after the command.
	Applied(a *Applied)
	// BatchDone is called without the lock after the commands of one log entry.
	BatchDone()
	// Lost reports that the commands proposed so far and not yet applied have an
	// unknown outcome: if they are applied later, it is without their waiters. The
	// handler must close every connection with such a command in flight. Commands
	// that are being applied now may still arrive with their waiters.
	Lost(reason error)
	// Jumped reports that a snapshot or a restored tree replaces the tree. The handler
	// must close every connection, because the changes in between fire no watches.
	Jumped()
	// Live appends the sessions of clients that sent something since the last call, and
	// of clients that the server has stopped reading from.
	Live(dst []int64) []int64
	// StateChanged reports a new Status. It is called without any lock.
	StateChanged(s Status)
}

// Role is a server's role in its ensemble.
type Role = ensemble.Role

// The roles.
const (
	Looking    = ensemble.Looking
	Standalone = ensemble.Standalone
	Leader     = ensemble.Leader
	Follower   = ensemble.Follower
	Observer   = ensemble.Observer
)

// Status is a snapshot of a Node's state: its role, the leader, whether it serves, and if not,
// the reason.
type Status = ensemble.Status
