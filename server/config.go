package server

import (
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/raftlog/engine"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server/zoocfg"
	"github.com/zkgo/zkgo/tree"
)

// Config configures a Server. The zero value of every field means its default; only
// DataDir or Memory must be set. Times and limits mean the same as the ZooKeeper
// settings with their names.
type Config struct {
	// ID is the number of this server among Members, 0 to raftfsm.MaxServer. A
	// standalone server ignores it and uses 1.
	ID      uint64
	Members []raftfsm.Member // the servers of the ensemble; empty: standalone
	// Ensemble makes Members an ensemble even if there is only one member
	// (standaloneEnabled=false).
	Ensemble bool
	// LeaderNoClients makes the server refuse clients while it leads (leaderServes=no).
	LeaderNoClients bool
	MultiAddress    bool // reconfig may give a server several addresses

	// ClientAddr is where plaintext clients connect, host:port; port 0 picks a free
	// one. If it is empty, only Dial reaches the server.
	ClientAddr string
	// SecureAddr is where clients with TLS connect; empty: nowhere.
	SecureAddr string
	// PortUnification lets clients with TLS connect to ClientAddr too.
	PortUnification bool
	TLS             *TLS // required for either

	Memory  bool   // keep all state in memory
	DataDir string // snapshots, and the log unless LogDir is set
	LogDir  string // the log
	// NoAutocreate makes the server refuse to start if one of the two directories is
	// missing (datadir.autocreate=false).
	NoAutocreate bool
	FS           vfs.FS         // the directories' file system; default vfs.OS
	Store        raftlog.Kind   // default raftlog.WAL
	Bolt         engine.Format  // boltlog.Format, for a Store of kind raftlog.Bolt; nil: not included
	Network      quorum.Network // between the servers; default quorum.TCP
	ListenAll    bool           // quorumListenOnAllIPs
	QuorumTLS    *QuorumTLS     // between the servers; nil: plaintext
	QuorumSASL   *QuorumSASL    // between the servers; nil: no SASL
	// ListenHost is where this server listens for its peers if that isn't the host they
	// dial, e.g. behind NAT, a forwarded port or a proxy. ListenAll takes precedence.
	ListenHost string
	// QuorumBindTries is how often the server tries to bind the quorum port at the
	// start, a second apart, while its name doesn't resolve or its address isn't
	// available; default 3, negative for ever. With a Network it tries once. It is also
	// how often the server looks up a host name of its other ports that doesn't resolve.
	QuorumBindTries int

	TickTime                             time.Duration // default 2 s
	InitLimit, SyncLimit                 int           // ticks; defaults 10 and 5
	MinSessionTimeout, MaxSessionTimeout time.Duration // defaults 2 and 20 ticks

	MaxClientCnxns     int           // per client address; default 60, negative: no limit
	MaxCnxns           int           // default no limit
	SessionlessTimeout time.Duration // default 10 s
	TCPKeepAlive       bool
	ListenBacklog      int // only shown to operators; default −1
	JuteMaxBuffer      int // longest request, default 1,048,575
	GlobalOutstanding  int // requests in flight at which reading pauses, default 1000
	// LargeRequestAbove is the length above which a request counts as large, and
	// LargeRequestMax bounds the bytes of all large requests together. Default none,
	// and 100 MiB.
	LargeRequestAbove, LargeRequestMax int
	ConnThrottle                       *ConnThrottle // nil: new sessions are not throttled
	RequestThrottle                    RequestThrottle
	// EagerACL checks a write against this server's own copy before it goes to the
	// ensemble (enableEagerACLCheck). It has no effect on a standalone server.
	EagerACL bool
	// MemoryCeiling bounds the memory of the process, in bytes: the server refuses
	// writes that would need more. Default none.
	MemoryCeiling int64
	// MaxOutput bounds the bytes queued for one connection. MaxOutputTotal bounds those
	// of all connections; above it, the server closes connections of the address with
	// the most. Default 64 MiB and 1 GiB, with a MemoryCeiling at most an eighth and a
	// quarter of it.
	MaxOutput, MaxOutputTotal int
	// MaxWatchBytes bounds the bytes that the watches of one connection take; the
	// server refuses more. MaxWatchBytesTotal bounds those of all connections; above
	// it, the server closes connections of the address with the most. Default 1 GiB and
	// 2 GiB, with a MemoryCeiling an eighth and a quarter of it.
	MaxWatchBytes, MaxWatchBytesTotal int64

	SnapCount    int
	SnapBytes    int64
	SnapRetain   int
	LogSegment   int // bytes per log file; default 32 MiB
	SnapTrailing int // log entries before a snapshot that are kept; default: by their size

	SkipACL, ExtendedTypes, Emulate353TTL bool
	EnforceQuota, ReconfigEnabled         bool
	ReadOnlyMode                          bool
	// LocalSessions lets a client begin a session while the server is in read-only mode
	// (localSessionsEnabled). It changes nothing else: every other session belongs to
	// the whole ensemble.
	LocalSessions         bool
	ContainerInterval     time.Duration
	ContainerMaxPerMin    int
	ContainerMaxNeverUsed time.Duration

	// LinearizableReads makes every client's reads linearizable. A client can also ask
	// for it itself; see docs/guide/reads.md.
	LinearizableReads bool

	FourLetterWords []string // words answered in addition to srvr; "*" is all

	DigestDisabled bool
	DigestAlg      string   // Java's name, default SHA1
	SuperDigest    string   // user:hash
	EnsembleNames  []string // ensembleAuthName; enables the scheme ensemble
	EnsembleScheme bool     // enables the scheme ensemble without a name; any name then passes
	KeyScheme      bool     // enables the scheme key of ZooKeeper's KeyAuthenticationProvider
	RequireAuth    []string // enforce.auth.schemes; empty: authentication is optional
	SASL           *SASL    // nil: no sasl
	SASLScheme     bool     // enables the sasl scheme even without SASL
	X509           bool     // enables the x509 scheme even without TLS
	// AuthProviders are schemes in addition to ZooKeeper's. All servers of an ensemble
	// must have the same ones.
	AuthProviders []AuthProvider

	Admin   *Admin   // commands over HTTP; nil: none
	Metrics *Metrics // metrics for Prometheus; nil: none
	Audit   *Audit   // audit log; nil: none

	// ZooCfg is the file that this configuration came from, for the commands that show
	// it; nil if there is none.
	ZooCfg *zoocfg.Config

	Interceptor Interceptor // between the clients and the server, for tests; nil: none

	Now    func() time.Time // the clock for sessions, and the default of Wall; default time.Now
	Wall   func() time.Time // the time of transactions; it may jump
	Logger *slog.Logger     // default: discard
}

// Defaults of a Config.
const (
	defaultTick            = 2 * time.Second
	defaultInitLimit       = 10
	defaultSyncLimit       = 5
	defaultMaxClientCnxns  = 60
	defaultSessionless     = 10 * time.Second
	defaultJuteMaxBuffer   = 0xfffff
	defaultOutstanding     = 1000
	defaultMaxOutput       = 64 << 20
	defaultMaxOutputTotal  = 1 << 30
	defaultMaxWatchesTotal = 2 << 30
	clientsPart            = 4 // divides the memory ceiling: one such part is for all watches, another for all replies
	defaultLargeRequests   = 100 << 20
	minSessionTicks        = 2
	maxSessionTicks        = 20
	defaultSnapshotsToKeep = 3
	standaloneID           = 1 // for a server without an ensemble, as in ZooKeeper
)

// withDefaults returns c with every unset field set to its default.
func (c Config) withDefaults() Config {
	if !c.distributed() {
		c.ID = standaloneID
	}
	or(&c.TickTime, defaultTick)
	or(&c.InitLimit, defaultInitLimit)
	or(&c.QuorumBindTries, defaultBindTries)
	or(&c.SyncLimit, defaultSyncLimit)
	or(&c.MinSessionTimeout, minSessionTicks*c.TickTime)
	or(&c.MaxSessionTimeout, maxSessionTicks*c.TickTime)
	or(&c.MaxClientCnxns, defaultMaxClientCnxns)
	or(&c.SessionlessTimeout, defaultSessionless)
	or(&c.ListenBacklog, -1)
	or(&c.JuteMaxBuffer, defaultJuteMaxBuffer)
	or(&c.GlobalOutstanding, defaultOutstanding)
	or(&c.LargeRequestMax, defaultLargeRequests)
	c.boundClients()
	or(&c.SnapRetain, defaultSnapshotsToKeep)
	or(&c.DigestAlg, "SHA1")
	or(&c.LogDir, c.DataDir)
	if c.FS == nil {
		c.FS = vfs.OS{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Wall == nil {
		c.Wall = c.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// boundClients sets the defaults of what clients may hold in memory.
func (c *Config) boundClients() {
	outputs, watches := int64(defaultMaxOutputTotal), int64(defaultMaxWatchesTotal)
	if c.MemoryCeiling > 0 {
		watches = max(c.MemoryCeiling/clientsPart, 1)
		outputs = min(outputs, watches)
	}
	or(&c.MaxOutputTotal, int(outputs))
	or(&c.MaxOutput, int(min(defaultMaxOutput, outputs/2)))
	or(&c.MaxWatchBytesTotal, watches)
	or(&c.MaxWatchBytes, max(watches/2, 1))
}

// or sets *p to def if it has the zero value.
func or[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}

// maxField is the longest field of a file that a state is loaded from: ZooKeeper's
// jute.maxbuffer and, by default, as much again.
func (c *Config) maxField() int { return 2 * c.JuteMaxBuffer }

// policy returns what this server decides for all servers while it leads.
func (c *Config) policy() tree.Policy {
	var p tree.Policy
	for _, s := range []struct {
		on  bool
		bit tree.Policy
	}{
		{c.SkipACL, tree.SkipACL},
		{c.ExtendedTypes, tree.ExtendedTypes},
		{c.EnforceQuota, tree.EnforceQuota},
		{c.Emulate353TTL, tree.Emulate353TTL},
		{c.X509 || c.TLS != nil, tree.SchemeX509},
		{c.SASLScheme || c.SASL != nil, tree.SchemeSASL},
		{len(c.AuthProviders) > 0 || c.KeyScheme, tree.SchemeOthers},
		{c.ReconfigEnabled, tree.ReconfigEnabled},
		{c.MultiAddress, tree.MultiAddress},
		{c.Ensemble, tree.LoneVoter},
	} {
		if s.on {
			p |= s.bit
		}
	}
	return p
}

// distributed reports whether c describes an ensemble.
func (c *Config) distributed() bool { return c.Ensemble || len(c.Members) > 1 }
