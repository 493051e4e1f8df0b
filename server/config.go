package server

import (
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/server/zoocfg"
	"github.com/zkgo/zkgo/tree"
)

// Config says how a Server runs. The zero value of every field means its
// default; only one of DataDir and Memory has to be set. Times and limits are
// ZooKeeper's of the same name.
type Config struct {
	// ID is the number of this server among Members, 0 to raftfsm.MaxServer. A
	// standalone server has none: whatever stands here, it counts as 1.
	ID      uint64
	Members []raftfsm.Member // the servers of the ensemble; empty: standalone
	// Ensemble makes Members an ensemble even if it is only one
	// (standaloneEnabled=false).
	Ensemble bool
	// LeaderNoClients keeps clients from the server while it leads
	// (leaderServes=no).
	LeaderNoClients bool
	MultiAddress    bool // reconfig may give a server several addresses

	// ClientAddr is where plaintext clients connect, host:port; port 0 takes a
	// free one. Empty: only Dial reaches the server.
	ClientAddr string
	// SecureAddr is where clients with TLS connect; none when empty.
	SecureAddr string
	// PortUnification makes clients with TLS welcome at ClientAddr too.
	PortUnification bool
	TLS             *TLS // has to be set for either

	Memory  bool   // keep everything in memory
	DataDir string // snapshots, and the log unless LogDir is set
	LogDir  string // the log
	// NoAutocreate refuses to start where one of the two is not there
	// (datadir.autocreate=false).
	NoAutocreate bool
	FS           vfs.FS         // what they are on; default vfs.OS
	Store        raftlog.Kind   // default raftlog.WAL
	Network      quorum.Network // between the servers; default quorum.TCP
	ListenAll    bool           // quorumListenOnAllIPs
	QuorumTLS    *QuorumTLS     // between the servers; nil: plaintext
	QuorumSASL   *QuorumSASL    // between the servers; nil: they prove nothing by it
	// ListenHost is where the other servers are listened for when that is not the
	// host that they dial: behind NAT, a forwarded port or a proxy. ListenAll wins.
	ListenHost string
	// QuorumBindTries is how often the quorum port is tried at the start, a second
	// apart, while its name does not resolve or its address is not there; default 3,
	// negative for ever. With a Network it is tried once.
	QuorumBindTries int

	TickTime                             time.Duration // default 2 s
	InitLimit, SyncLimit                 int           // ticks; defaults 10 and 5
	MinSessionTimeout, MaxSessionTimeout time.Duration // defaults 2 and 20 ticks

	MaxClientCnxns     int           // per client address; default 60, negative: no limit
	MaxCnxns           int           // default no limit
	SessionlessTimeout time.Duration // default 10 s
	TCPKeepAlive       bool
	ListenBacklog      int // shown to operators only; default −1
	JuteMaxBuffer      int // longest request, default 1,048,575
	GlobalOutstanding  int // requests in flight at which reading pauses, default 1000
	// LargeRequestAbove makes requests longer than this count as large, and
	// LargeRequestMax is how many bytes all of them may have together; default
	// none, and 100 MiB.
	LargeRequestAbove, LargeRequestMax int
	ConnThrottle                       *ConnThrottle // nil: sessions are begun as fast as they come
	RequestThrottle                    RequestThrottle
	// EagerACL checks a write against this server's own copy before it goes to
	// the ensemble (enableEagerACLCheck). It means nothing to a server alone.
	EagerACL bool
	// MemoryCeiling is how much memory the process may use, in bytes, before
	// writes that need more are refused; default none.
	MemoryCeiling int64
	// MaxOutput is how many bytes may be queued for one connection, MaxOutputTotal how many
	// for all before the largest is closed. Default 64 MiB and 1 GiB, with a MemoryCeiling at
	// most an eighth and a quarter of it.
	MaxOutput, MaxOutputTotal int
	// MaxWatchBytes is how many bytes the watches of one connection may take before more are
	// refused, MaxWatchBytesTotal how many those of all before the largest is closed. Default
	// 1 GiB and 2 GiB, with a MemoryCeiling an eighth and a quarter of it.
	MaxWatchBytes, MaxWatchBytesTotal int64

	SnapCount    int
	SnapBytes    int64
	SnapRetain   int
	LogSegment   int // bytes in a file of the log; default 32 MiB
	SnapTrailing int // entries of the log that stay behind a snapshot; default: by their size

	SkipACL, ExtendedTypes, Emulate353TTL bool
	EnforceQuota, ReconfigEnabled         bool
	ReadOnlyMode                          bool
	// LocalSessions lets a client begin a session while the server is in read-only
	// mode (localSessionsEnabled). It changes nothing else: every other session is
	// one of the whole ensemble.
	LocalSessions         bool
	ContainerInterval     time.Duration
	ContainerMaxPerMin    int
	ContainerMaxNeverUsed time.Duration

	// LinearizableReads makes every client's reads linearizable. A client can ask
	// for it by itself, see docs/reads.md.
	LinearizableReads bool

	FourLetterWords []string // which are answered besides srvr; "*" is all

	DigestDisabled bool
	DigestAlg      string   // Java's name, default SHA1
	SuperDigest    string   // user:hash
	EnsembleNames  []string // ensembleAuthName; the scheme ensemble exists with it
	EnsembleScheme bool     // the scheme ensemble exists even without a name, and takes any
	KeyScheme      bool     // the scheme key of ZooKeeper's KeyAuthenticationProvider exists
	RequireAuth    []string // enforce.auth.schemes; empty: nobody has to authenticate
	SASL           *SASL    // nil: no sasl
	SASLScheme     bool     // the sasl scheme exists even without SASL
	X509           bool     // the x509 scheme exists even without TLS
	// AuthProviders are schemes besides ZooKeeper's. Every server of an ensemble
	// has to have the same.
	AuthProviders []AuthProvider

	Admin   *Admin   // commands over HTTP; nil: none
	Metrics *Metrics // numbers for Prometheus; nil: none
	Audit   *Audit   // who has changed what; nil: none

	// ZooCfg is the file this configuration came from, for the commands that
	// show it; nil without.
	ZooCfg *zoocfg.Config

	Interceptor Interceptor // between the clients and the server, for tests; nil: nobody

	Now    func() time.Time // the clock that sessions live by, and what Wall is by default; default time.Now
	Wall   func() time.Time // of transactions; it may jump
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
	clientsPart            = 4 // one of so many parts of the memory ceiling is for all watches, another for all replies
	defaultLargeRequests   = 100 << 20
	minSessionTicks        = 2
	maxSessionTicks        = 20
	defaultSnapshotsToKeep = 3
	standaloneID           = 1 // of a server without an ensemble, as in ZooKeeper
)

// withDefaults returns c with every unset field set.
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

// boundClients sets what clients may hold in memory.
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

// policy is what this server decides for everybody while it leads.
// maxField is the longest field of a file that a state is loaded from: ZooKeeper's
// jute.maxbuffer and, by default, as much again.
func (c *Config) maxField() int { return 2 * c.JuteMaxBuffer }

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
