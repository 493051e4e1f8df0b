package zoocfg

import (
	"maps"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/smallfile"
)

// Unset is the value of a port, a backlog or a limit that no line has set.
const Unset = -1

// Config is a configuration after reading: every key with its default applied.
// The zero value is of no use; start from Parse, ParseText or Default.
type Config struct {
	// Path is the file the configuration came from, "" without one.
	Path string
	// Text is the whole file as read. Show RedactedText to others.
	Text string

	TickTime             time.Duration
	InitLimit, SyncLimit int // in ticks; 0 only where no ensemble is configured

	DataDir    string
	DataLogDir string // DataDir unless set

	// ClientPort is -1 when there is no plaintext listener. Once the own
	// server line has been found, port and address are the ones it names.
	ClientPort              int
	ClientPortAddress       string // "" is every address
	SecureClientPort        int    // -1 without a TLS listener
	SecureClientPortAddress string
	PortUnification         bool // client.portUnification: TLS and plaintext on one port

	MinSessionTimeout, MaxSessionTimeout time.Duration // 2 and 20 ticks unless set

	MaxClientCnxns          int // per address, 0 is no limit
	MaxCnxns                int // in total, 0 is no limit
	ClientPortListenBacklog int // -1 is the system's
	SessionlessCnxnTimeout  time.Duration
	TCPKeepAlive            bool

	// MyID is the number in <dataDir>/myid; HasMyID tells 0 from none.
	MyID    uint64
	HasMyID bool

	Membership

	StandaloneEnabled, ReconfigEnabled bool
	DynamicConfigFile                  string
	PeerType                           Role // the role the server list gives, if it gives one
	QuorumListenOnAllIPs               bool
	QuorumListenAddress                string // "" is the host of this server's server.N line; zkgo's own
	MultiAddressEnabled                bool
	// PortBindRetry is how often the quorum port is tried, 0 for ever
	// (electionPortBindRetry).
	PortBindRetry                   int
	MultiAddressReachabilityCheck   bool
	MultiAddressReachabilityTimeout time.Duration
	LocalSessionsEnabled            bool
	LocalSessionsUpgradingEnabled   bool
	LeaderServes                    bool
	ReadOnlyMode                    bool
	LinearizableReads               bool // of ours

	SnapCount         int
	SnapSizeLimitKB   int64
	AutopurgeRetain   int           // at least 3
	AutopurgeInterval time.Duration // 0 or less is off
	ForceSync         bool
	FsyncWarning      time.Duration
	SnapshotTrustEmpty,
	DataDirAutocreate,
	DBAutocreate bool
	LogStore string // "wal", "bolt", or "" for the server's own choice

	JuteMaxBuffer       int     // bytes
	JuteExtraSize       int     // bytes a server adds when it checks; JuteMaxBuffer unless set
	LargeRequestMax     int     // bytes of all large requests together
	LargeRequestAt      int     // bytes from which a request is large, -1 is never
	GlobalOutstanding   int     // requests in flight before reading stops
	MemoryCeiling       Ceiling // of ours: memory at which writes are refused
	ConnThrottle        ConnThrottle
	RequestThrottle     RequestThrottle
	FourLetterWhitelist []string

	SkipACL, ExtendedTypes, Emulate353TTL bool
	EnforceQuota, EnableEagerACLCheck     bool
	ContainerCheckInterval                time.Duration
	ContainerMaxPerMinute                 int
	ContainerMaxNeverUsed                 time.Duration
	Auth                                  Auth
	QuorumAuth                            QuorumAuth
	Admin                                 Admin
	Metrics                               Metrics
	Audit                                 Audit
	TLS, QuorumTLS                        TLS
	SSLQuorum                             bool
	QuorumPortUnification                 bool // portUnification: peers may speak either
	FIPSMode                              bool

	// HierarchicalQuorums is "" if majorities of the voters decide, else why
	// the configured groups and weights cannot be honoured.
	HierarchicalQuorums string
	// Warnings is what a person should know about although the file is valid.
	Warnings []Warning
	// Ignored lists the keys that are ZooKeeper's but mean nothing here.
	Ignored []string

	origin   map[string]origin                 // where each key was last set
	myIDFrom string                            // the file MyID was read from, "" if it was given
	readFile func(path string) ([]byte, error) // the only way to the disk
	unknown  int                               // keys
}

// Membership is what belongs into the dynamic file: who the servers are and
// whose agreement counts.
type Membership struct {
	Servers       []Server            // sorted by id
	Groups        map[uint64][]uint64 // group.N: the ids in it, in the order written
	Weights       map[uint64]int64    // weight.N as written
	ConfigVersion uint64              // of the membership: the hex suffix of the dynamic file's name
}

// Auth is everything that decides who a client is.
type Auth struct {
	DigestEnabled     bool
	DigestAlg         string // a Java name: SHA1, SHA-256, …
	SuperDigest       string // DigestAuthenticationProvider.superDigest, user:hash
	X509SuperUser     string
	SASLSuperUser     string            // superUser
	SASLSuperPassword string            // SASLAuthenticationProvider.superPassword
	EnsembleNames     []string          // ensembleAuthName
	JAASFile          string            // java.security.auth.login.config
	SASLServerContext string            // sasl.serverconfig
	AllowSASLFailed   bool              // allowSaslFailedClients
	RequireClientSASL bool              // sessionRequireClientSASLAuth
	EnforceEnabled    bool              // enforce.auth.enabled
	EnforceSchemes    []string          // enforce.auth.schemes
	RemoveHost        bool              // kerberos.removeHostFromPrincipal
	RemoveRealm       bool              // kerberos.removeRealmFromPrincipal
	Providers         map[string]string // authProvider.<name>: Java class
	SSLScheme         string            // ssl.authProvider: the scheme of a TLS client, x509
}

// QuorumAuth is SASL between the servers.
type QuorumAuth struct {
	EnableSASL, ServerRequire, LearnerRequire bool
	ServerContext, LearnerContext             string
	ServicePrincipal                          string
}

// Admin is the HTTP administration server.
type Admin struct {
	Enable                                  bool
	Port                                    int
	PortSet                                 bool // a line has set Port
	Address                                 string
	CommandURL                              string
	IdleTimeout                             time.Duration
	PortUnification, ForceHTTPS, NeedClient bool
	SnapshotEnabled, RestoreEnabled         bool
	RateLimiterInterval                     time.Duration
	RestoreInterval                         time.Duration // the same key, with a default of its own
	Profiles                                bool          // admin.pprof.enabled; zkgo's own
}

// Metrics is the metrics provider.
type Metrics struct {
	ClassName     string
	Enabled       bool // ClassName is the Prometheus provider
	HTTPHost      string
	HTTPPort      int
	ExportJVMInfo bool
}

// Audit is the log of who has changed what. All but Enable is zkgo's own: what
// ZooKeeper has in logback.xml.
type Audit struct {
	Enable        bool
	File          string // "" is the server's own log
	MaxFileSizeKB int64  // of File before another is begun
	MaxBackups    int    // files kept besides
}

// Store is a key store or a trust store.
type Store struct {
	Location, Password, PasswordPath string
	Type                             string // JKS, PEM, PKCS12, BCFKS, or "" for by extension
}

// TLS is one of the two sets of TLS keys: ssl.* for clients, ssl.quorum.* for peers.
type TLS struct {
	KeyStore, TrustStore       Store
	Protocol                   string   // "" is TLS 1.3 with 1.2
	EnabledProtocols           []string // empty is Protocol
	CipherSuites               []string // empty is the default list
	ClientAuth                 string   // none, want or need
	HostnameVerification       bool
	ClientHostnameVerification bool
	AllowReverseDNSLookup      bool
	CRL, OCSP                  bool
	CertReload                 bool // client.certReload, sslQuorumReloadCertFiles
	HandshakeDetectionTimeout  time.Duration
}

// FourLetterAll reports whether the whitelist lets every four letter word through.
func (c *Config) FourLetterAll() bool {
	return len(c.FourLetterWhitelist) == 1 && c.FourLetterWhitelist[0] == "*"
}

// Distributed reports whether the configuration is one of an ensemble, as
// opposed to a standalone server: ZooKeeper's own rule.
func (c *Config) Distributed() bool {
	return !c.StandaloneEnabled || len(c.Voters()) > 1
}

// Voters are the participants among the servers.
func (m *Membership) Voters() []Server {
	var voters []Server
	for _, s := range m.Servers {
		if s.Role == Participant {
			voters = append(voters, s)
		}
	}
	return voters
}

// Server returns the server with this id.
func (m *Membership) Server(id uint64) (Server, bool) {
	for _, s := range m.Servers {
		if s.ID == id {
			return s, true
		}
	}
	return Server{}, false
}

// Self is the server line of this server: the one with MyID.
func (c *Config) Self() (Server, bool) {
	if !c.HasMyID {
		return Server{}, false
	}
	return c.Server(c.MyID)
}

// Default is the configuration of a server that was given no file: one
// standalone server on port 2181 with its data in ./zkgo-data.
func Default() *Config {
	c := blank()
	c.setTick(2 * time.Second)
	c.ClientPort = 2181
	c.DataDir, c.DataLogDir = "./zkgo-data", "./zkgo-data"
	return c
}

// Clone is a copy that shares nothing with c.
func (c *Config) Clone() *Config {
	d := *c
	d.Servers = slices.Clone(c.Servers)
	for i, s := range d.Servers {
		d.Servers[i].Addrs = slices.Clone(s.Addrs)
	}
	d.Groups = maps.Clone(c.Groups)
	for id, ids := range d.Groups {
		d.Groups[id] = slices.Clone(ids)
	}
	d.Weights = maps.Clone(c.Weights)
	d.Auth.Providers = maps.Clone(c.Auth.Providers)
	d.origin = maps.Clone(c.origin)
	d.Warnings = slices.Clone(c.Warnings)
	for _, list := range []*[]string{
		&d.Ignored, &d.FourLetterWhitelist, &d.Auth.EnsembleNames, &d.Auth.EnforceSchemes,
		&d.TLS.EnabledProtocols, &d.TLS.CipherSuites, &d.QuorumTLS.EnabledProtocols, &d.QuorumTLS.CipherSuites,
	} {
		*list = slices.Clone(*list)
	}
	return &d
}

// blank is the state before the first line: ZooKeeper's defaults.
func blank() *Config {
	c := &Config{
		TickTime:   defaultTick,
		ClientPort: Unset, SecureClientPort: Unset,
		MaxClientCnxns: 60, ClientPortListenBacklog: Unset,
		MinSessionTimeout: 2 * defaultTick, MaxSessionTimeout: 20 * defaultTick,
		SessionlessCnxnTimeout: 10 * time.Second,
		StandaloneEnabled:      true, LeaderServes: true, PortBindRetry: 3,
		MultiAddressReachabilityCheck: true, MultiAddressReachabilityTimeout: time.Second,
		SnapCount: 100000, SnapSizeLimitKB: 4194304, AutopurgeRetain: minRetain,
		ForceSync: true, FsyncWarning: time.Second,
		DataDirAutocreate: true, DBAutocreate: true,
		JuteMaxBuffer: defaultJute, JuteExtraSize: defaultJute,
		LargeRequestMax: 100 << 20, LargeRequestAt: Unset, GlobalOutstanding: 1000,
		MemoryCeiling: Ceiling{Percent: 80}, ConnThrottle: defaultConnThrottle(), RequestThrottle: defaultRequestThrottle(),
		ContainerCheckInterval: time.Minute, ContainerMaxPerMinute: 10000,
		Auth: Auth{DigestEnabled: true, DigestAlg: "SHA1", SASLServerContext: "Server", SSLScheme: "x509"},
		QuorumAuth: QuorumAuth{ServerContext: "QuorumServer", LearnerContext: "QuorumLearner",
			ServicePrincipal: "zkquorum/localhost"},
		Admin: Admin{Enable: true, Port: 8080, Address: "0.0.0.0", CommandURL: "/commands",
			IdleTimeout: 30 * time.Second, SnapshotEnabled: true, RestoreEnabled: true,
			// Said to be 5 minutes; ZooKeeper 3.9 takes the number for microseconds.
			RateLimiterInterval: 300 * time.Millisecond, RestoreInterval: 5 * time.Minute},
		Metrics: Metrics{ClassName: defaultMetrics, HTTPHost: "0.0.0.0", HTTPPort: 7000, ExportJVMInfo: true},
		Audit:   Audit{MaxFileSizeKB: 10240, MaxBackups: 10},
		TLS:     defaultTLS(), QuorumTLS: defaultTLS(),
		FIPSMode: true,
		origin:   map[string]origin{},
		readFile: smallfile.Read,
	}
	c.QuorumTLS.ClientHostnameVerification, c.QuorumTLS.AllowReverseDNSLookup = true, true
	return c
}

func defaultTLS() TLS {
	return TLS{ClientAuth: "need", HostnameVerification: true, HandshakeDetectionTimeout: 5 * time.Second}
}

const (
	defaultTick    = 3 * time.Second
	defaultJute    = 0xfffff
	minRetain      = 3
	defaultMetrics = "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider"
)
