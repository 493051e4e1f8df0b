package raftfsm

import (
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// Member is one server of the ensemble.
type Member struct {
	ID            uint64   // as in server.N, 0 to MaxServer
	QuorumAddr    string   // host:port that the other servers dial
	Alternates    []string // more addresses of the quorum port (multiAddress)
	ElectionAddr  string   // host:port of zoo.cfg's election port; kept for the config node, not dialled
	Observer      bool
	ClientAddr    string // host:port for clients as the config node prints it; empty without
	ConfigNodeTxt string // the line of /zookeeper/config for this member

	named bool // a client's reconfig has named this line: only another one changes it
}

// Config says how a Node runs. The zero value of every optional field means
// its default.
type Config struct {
	ID       uint64   // this server's id, 0 to MaxServer; a standalone server is 1
	Members  []Member // the list of zoo.cfg; fewer than two voters and no observer: standalone,
	Ensemble bool     // unless this says that it is an ensemble of one (standaloneEnabled=false)
	// ClientPort is what a line of the list without a client part lacks when it
	// is proposed for a reconfig: the client port of this server. 0: unknown.
	ClientPort int

	Memory     bool           // keep everything in memory, no disk
	LogDir     string         // Raft log and vote
	SnapDir    string         // snapshots
	FS         vfs.FS         // what the directories are on; default vfs.OS
	Store      raftlog.Kind   // default raftlog.WAL
	LogSegment int            // bytes in a file of the log of kind raftlog.WAL; default 32 MiB
	Network    quorum.Network // default quorum.TCP
	TLS        *quorum.TLS    // between the servers; nil: plaintext. Its Hosts is set here
	SASL       *quorum.SASL   // between the servers; nil: they prove nothing by it
	ListenAll  bool           // quorumListenOnAllIPs
	ListenHost string         // where to listen for the other servers; default the host that they dial, ListenAll wins

	TickTime             time.Duration // default 2 s
	InitLimit, SyncLimit int           // ticks; defaults 10 and 5
	SnapCount            int           // transactions between snapshots; default 100,000
	SnapBytes            int64         // log bytes between snapshots; default 4 GiB
	SnapRetain           int           // snapshots kept; default 3
	SnapTrailing         int           // entries that stay in the log behind a snapshot; default: about 64 MiB of them

	Policy               tree.Policy // this server's switches, in force while it leads
	Full                 func() bool // reports whether it has to refuse what needs memory, for everybody while it leads; nil: never
	ContainerInterval    time.Duration
	ContainerMaxPerMin   int
	ContainerMaxNeverUse time.Duration

	Now     func() time.Time // the clock that sessions live by, and what Wall is by default; default time.Now
	Wall    func() time.Time // stamped into transactions; it may jump
	Logger  *slog.Logger     // default: discard
	Handler Handler

	open   func(Config) (stores, error) // opens the stores; tests put faults in
	newest uint32                       // behaviour level that this code knows; tests raise it; default level
}

// Kind says what a Command asks for.
type Kind uint8

// The kinds of command that a server proposes.
const (
	KindRequest Kind = iota + 1 // a client's write, Op and Body
	KindAttach                  // create a session (Session 0) or attach to one
	KindSync                    // no effect, no zxid: orders the reads behind it after everything committed
)

// Command is what a server asks the ensemble to do. Propose copies what it
// needs: Body, IDs and Prints may be reused when it returns.
type Command struct {
	Kind    Kind
	Session int64      // 0 in KindAttach: a new session
	Gen     uint64     // the session's generation that this connection attached with
	IDs     []proto.ID // the connection's identities, at most 32,767
	Op      proto.Op
	Body    []byte // the request as the client sent it, behind its header; known to decode

	// Prints are the fingerprints, sorted, of those identities that are not in IDs. A
	// request that names the scheme auth in an ACL, or a reconfig, has all of them in IDs.
	Prints []tree.Fingerprint

	Password [proto.PasswordSize]byte // KindAttach: the client's, or 16 random bytes for a new session
	Timeout  int32                    // KindAttach: negotiated, milliseconds

	// Waiter comes back in Applied when the command was applied here.
	Waiter any

	// Way ties commands together that must not be done one without the other: a
	// connection's, of which the later ones may build on what the earlier did.
	// Propose sets it. Given back in the next command, it makes Propose refuse that
	// one if what was on its way has been lost meanwhile; 0 is for the first.
	Way uint64
}

// Applied tells a Handler what one command of the log did. It and everything
// it points to are valid only during the call.
type Applied struct {
	Kind    Kind
	Op      proto.Op // OpCreateSession for KindAttach, OpCloseSession also for expiry
	Waiter  any      // of the Command, when this server proposed it and waits for it; else nil
	Session int64
	Zxid    int64        // the transaction's zxid; 0 when it has none (sync, re-attach, moved sessions)
	Code    proto.Code   // ErrSessionMoved and ErrSessionExpired also when the session check refused it
	Result  *tree.Result // nil unless the tree was asked
	Events  []tree.Event // to be fired before the reply
	Body    []byte       // the request's body, nil for KindAttach and KindSync

	// Attached is the session as it is after a successful KindAttach.
	Attached *session.Session
}

// Handler is the server's side: what the replicated state calls. Applied and
// Jumped are called with the tree's write lock held, on the one goroutine that
// applies the log; no method may block or call back into Propose.
type Handler interface {
	// Applied is called for every command in log order on every server. The
	// events are fired, then the waiter is answered, then the reads queued
	// behind it are run, all before Applied returns.
	Applied(a *Applied)
	// Behind appends the paths of the znodes that will be read when a waiter's command
	// has been applied, as far as they are worth fetching ahead.
	Behind(waiter any, paths []string) []string
	// BatchDone is called without the lock after the commands of one log entry.
	BatchDone()
	// Lost says that commands proposed so far and not yet applied may or may
	// not be applied later, without their waiters: every connection with one
	// in flight has to be closed. A few that are being applied at the moment
	// may still come with their waiters.
	Lost(reason error)
	// Jumped says that the tree is replaced, by a snapshot or a restored one: every
	// connection has to be closed, because what lies in between fires no watch.
	Jumped()
	// Live appends the sessions heard from since the last call, and those whose
	// client cannot be heard because the server has stopped reading from it.
	Live(dst []int64) []int64
	// StateChanged tells of a new Status. It is called without any lock.
	StateChanged(s Status)
}

// Role is what a server is in its ensemble.
type Role uint8

// The roles.
const (
	Looking Role = iota
	Standalone
	Leader
	Follower
	Observer
)

// Status is a picture of a Node.
type Status struct {
	Role    Role
	Leader  uint64 // id; nothing while Role is Looking
	Epoch   uint32
	Serving bool // caught up under a leader: clients may be answered
	Reason  string
}
