package server

import (
	"log/slog"
	"time"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/internal/vfs"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/storage"
	"github.com/zkgo/zkgo/tree"
)

// Config configures a Server. The zero value of every field means its default; only DataDir
// or Memory must be set. Times and limits mean the same as the ZooKeeper settings of the
// same names.
type Config struct {
	Memory  bool   // keep all state in memory
	DataDir string // snapshots, and the log unless Log.Dir is set
	// NoAutocreate makes the server refuse to start if one of the two directories is
	// missing (datadir.autocreate=false).
	NoAutocreate bool

	// ClientAddr is where plaintext clients connect, host:port; port 0 picks a free
	// one. If it is empty, only Dial reaches the server.
	ClientAddr string
	// SecureAddr is where clients with TLS connect; empty: nowhere.
	SecureAddr string
	// PortUnification lets clients with TLS connect to ClientAddr too.
	PortUnification bool
	TLS             *TLS // required for either

	TickTime                             time.Duration // default 2 s
	MinSessionTimeout, MaxSessionTimeout time.Duration // defaults 2 and 20 ticks

	// LinearizableReads makes every client's reads linearizable. A client can also ask for
	// linearizable reads; see docs/guide/reads.md.
	LinearizableReads bool
	ReadOnlyMode      bool
	// LocalSessions lets a client begin a session while the server is in read-only mode
	// (localSessionsEnabled). All other sessions belong to the whole ensemble.
	LocalSessions   bool
	FourLetterWords []string // words answered in addition to srvr; "*" is all

	Quorum  Quorum   // the ensemble; without members the server is standalone
	Log     Log      // the log and the snapshots
	Limits  Limits   // limits of clients
	Znodes  Znodes   // limits of znodes
	Auth    Auth     // identities and permissions of clients
	Admin   *Admin   // commands over HTTP; nil: none
	Metrics *Metrics // metrics for Prometheus; nil: none
	Audit   *Audit   // audit log; nil: none

	Logger *slog.Logger // default: discard
	Env    Env          // dependencies that the program provides, or a test replaces

	// zooCfg is the file that this configuration came from, if any, for the commands that
	// show it.
	zooCfg *zoocfg.Config
}

// Quorum is the ensemble that a server belongs to.
type Quorum struct {
	// ID is the number of this server among Members, 0 to raftfsm.MaxServer. A
	// standalone server ignores it and uses 1.
	ID      uint64
	Members []raftfsm.Member // the servers of the ensemble; empty: standalone
	// Ensemble makes Members an ensemble even if there is only one member
	// (standaloneEnabled=false).
	Ensemble bool
	// NeedsAll makes empty servers form an ensemble only once all listed voters are running
	// and empty, rather than a majority. A reconfig then adds only servers that are connected
	// (formationNeedsAll).
	NeedsAll bool
	// LeaderNoClients makes the server refuse clients while it leads (leaderServes=no).
	LeaderNoClients bool
	Reconfig        bool // reconfigEnabled
	MultiAddress    bool // reconfig may give a server several addresses

	InitLimit, SyncLimit int         // ticks; defaults 10 and 5
	TLS                  *QuorumTLS  // between the servers; nil: plaintext
	SASL                 *QuorumSASL // between the servers; nil: no SASL

	// ObserverMasterAddr is where standbys and other observers get the state and all later
	// transactions (observerMasterPort); empty: nowhere. TLS and SASL are the same as
	// between the servers. ObserverMasterBytes is how many bytes of transactions it keeps
	// for them (observerMaster.sizeLimit); default 64 MiB.
	ObserverMasterAddr  string
	ObserverMasterBytes int

	ListenAll bool // quorumListenOnAllIPs
	// ListenHost is where this server listens for its peers if they dial another host, e.g.
	// because of NAT, a forwarded port or a proxy. ListenAll overrides it.
	ListenHost string
	// BindTries is how often the server tries to bind the quorum port at the start, a second
	// apart, while its name doesn't resolve or its address isn't available; default 3,
	// negative: forever. With a Network it tries once. It is also how often the server looks
	// up a host name of its other ports that doesn't resolve.
	BindTries int
}

// Log is where a server keeps its log, and when it creates snapshots.
type Log = raftfsm.Log

// Limits bounds the resources that clients use.
type Limits struct {
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
	// MemoryCeiling bounds the memory of the process, in bytes: the server refuses
	// writes that would need more. Default none.
	MemoryCeiling int64
	// MaxOutput bounds the bytes queued for one connection, MaxOutputTotal for all
	// connections; above it, the server closes connections of the address with the most
	// bytes. Default 64 MiB and 1 GiB, and at most an eighth and a quarter of a
	// MemoryCeiling.
	MaxOutput, MaxOutputTotal int
	// MaxWatchBytes bounds the memory of the watches of one connection; the server refuses
	// more. MaxWatchBytesTotal bounds the memory of all watches; above it, the server closes
	// connections of the address with the most bytes. Default 1 GiB and 2 GiB, or an eighth
	// and a quarter of a MemoryCeiling.
	MaxWatchBytes, MaxWatchBytesTotal int64
}

// Znodes limits znodes, and sets how often the server looks for znodes to delete.
type Znodes struct {
	ExtendedTypes, Emulate353TTL bool
	EnforceQuota                 bool
	ContainerInterval            time.Duration // default 1 minute
	ContainerMaxPerMin           int           // default 10,000
	ContainerMaxNeverUsed        time.Duration // default: never
}

// Auth configures the authentication of clients and whether ACLs are checked.
type Auth struct {
	SkipACL bool
	// EagerACL checks a write against this server's own copy before it goes to the
	// ensemble (enableEagerACLCheck). It has no effect on a standalone server.
	EagerACL bool

	DigestDisabled bool
	DigestAlg      string   // Java's name, default SHA1
	SuperDigest    string   // user:hash
	EnsembleNames  []string // ensembleAuthName; enables the scheme ensemble
	EnsembleScheme bool     // enables the scheme ensemble without a name; any name then passes
	KeyScheme      bool     // enables the scheme key of ZooKeeper's KeyAuthenticationProvider
	Require        []string // enforce.auth.schemes; empty: authentication is optional
	SASL           *SASL    // nil: no sasl
	SASLScheme     bool     // enables the sasl scheme even without SASL
	X509           bool     // enables the x509 scheme even without TLS
	// Providers are schemes in addition to ZooKeeper's. All servers of an ensemble must
	// have the same ones.
	Providers []AuthProvider
}

// Env is the environment of a server: parts that the program provides, and parts of the
// machine that a test may replace.
type Env struct {
	Formats     Formats          // key stores, and files of ZooKeeper; the zero value supports no formats
	FS          storage.FS       // the directories' file system; default: the machine's
	Network     raftfsm.Network  // between the servers; default TCP
	Now         func() time.Time // the clock for sessions, and the default of Wall; default time.Now
	Wall        func() time.Time // the time of transactions; it may jump
	Interceptor Interceptor      // between the clients and the server; nil: none
	Mirror      Mirror           // follows another ensemble; nil: none
}

// Defaults of a Config.
const (
	defaultMaxOutput       = 64 << 20
	defaultMaxOutputTotal  = 1 << 30
	defaultMaxWatchesTotal = 2 << 30
	clientsPart            = 4 // divides the memory ceiling: one part is for all watches, another for all replies
	standaloneID           = 1 // for a server without an ensemble, as in ZooKeeper
)

// withDefaults returns c with every unset field set to its default.
func (c Config) withDefaults() Config {
	if !c.distributed() {
		c.Quorum.ID = standaloneID
	}
	or(&c.TickTime, defaults.TickTime)
	or(&c.Quorum.InitLimit, defaults.InitLimit)
	or(&c.Quorum.BindTries, defaults.BindTries)
	or(&c.Quorum.SyncLimit, defaults.SyncLimit)
	or(&c.MinSessionTimeout, defaults.MinSessionTicks*c.TickTime)
	or(&c.MaxSessionTimeout, defaults.MaxSessionTicks*c.TickTime)
	or(&c.Limits.MaxClientCnxns, defaults.MaxClientCnxns)
	or(&c.Limits.SessionlessTimeout, defaults.SessionlessTimeout)
	or(&c.Limits.ListenBacklog, defaults.ListenBacklog)
	or(&c.Limits.JuteMaxBuffer, defaults.JuteMaxBuffer)
	or(&c.Limits.GlobalOutstanding, defaults.GlobalOutstanding)
	or(&c.Limits.LargeRequestMax, defaults.LargeRequestMax)
	c.boundClients()
	c.Log.SetDefaults(c.DataDir)
	or(&c.Znodes.ContainerInterval, defaults.ContainerInterval)
	or(&c.Znodes.ContainerMaxPerMin, defaults.ContainerMaxPerMin)
	or(&c.Auth.DigestAlg, defaults.DigestAlg)
	if c.Env.FS == nil {
		c.Env.FS = vfs.OS{}
	}
	if c.Env.Now == nil {
		c.Env.Now = time.Now
	}
	if c.Env.Wall == nil {
		c.Env.Wall = c.Env.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// boundClients sets the defaults of the memory limits for clients.
func (c *Config) boundClients() {
	outputs, watches := int64(defaultMaxOutputTotal), int64(defaultMaxWatchesTotal)
	if c.Limits.MemoryCeiling > 0 {
		watches = max(c.Limits.MemoryCeiling/clientsPart, 1)
		outputs = min(outputs, watches)
	}
	or(&c.Limits.MaxOutputTotal, int(outputs))
	or(&c.Limits.MaxOutput, int(min(defaultMaxOutput, outputs/2)))
	or(&c.Limits.MaxWatchBytesTotal, watches)
	or(&c.Limits.MaxWatchBytes, max(watches/2, 1))
}

// or sets *p to def if it has the zero value.
func or[T comparable](p *T, def T) {
	var zero T
	if *p == zero {
		*p = def
	}
}

// maxField is the length limit of a field in a file with a state: ZooKeeper's jute.maxbuffer
// plus, by default, the same amount again.
func (c *Config) maxField() int { return 2 * c.Limits.JuteMaxBuffer }

// policy returns the settings that this server decides for all servers while it leads.
func (c *Config) policy() tree.Policy {
	var p tree.Policy
	for _, s := range []struct {
		on  bool
		bit tree.Policy
	}{
		{c.Auth.SkipACL, tree.SkipACL},
		{c.Znodes.ExtendedTypes, tree.ExtendedTypes},
		{c.Znodes.EnforceQuota, tree.EnforceQuota},
		{c.Znodes.Emulate353TTL, tree.Emulate353TTL},
		{c.Auth.X509 || c.TLS != nil, tree.SchemeX509},
		{c.Auth.SASLScheme || c.Auth.SASL != nil, tree.SchemeSASL},
		{len(c.Auth.Providers) > 0 || c.Auth.KeyScheme, tree.SchemeOthers},
		{c.Quorum.Reconfig, tree.ReconfigEnabled},
		{c.Quorum.MultiAddress, tree.MultiAddress},
		{c.Quorum.Ensemble, tree.LoneVoter},
	} {
		if s.on {
			p |= s.bit
		}
	}
	return p
}

// distributed reports whether c describes an ensemble.
func (c *Config) distributed() bool { return c.Quorum.Ensemble || len(c.Quorum.Members) > 1 }

// ensembleScheme reports whether a client may name the ensemble that it wants.
func (c *Config) ensembleScheme() bool { return c.Auth.EnsembleScheme || len(c.Auth.EnsembleNames) > 0 }
