package zoocfg

import (
	"maps"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/defaults"
	"github.com/zkgo/zkgo/internal/smallfile"
)

// Unset is the value of a port, a backlog or a limit that wasn't set.
const Unset = -1

// Config is a parsed configuration with all defaults applied. The zero value isn't
// usable; start from Parse, ParseText or Default.
type Config struct {
	// Path is the configuration file, or "" if there is none.
	Path string
	// Text is the whole file as read. Use RedactedText to show it to others.
	Text string

	TickTime             time.Duration
	InitLimit, SyncLimit int // in ticks; 0 only if no ensemble is configured

	DataDir    string
	DataLogDir string // defaults to DataDir

	// ClientPort is -1 if there is no plaintext listener. Once the server's own line
	// has been found, port and address are the ones in that line.
	ClientPort              int
	ClientPortAddress       string // "" means all addresses
	SecureClientPort        int    // -1 means no TLS listener
	SecureClientPortAddress string
	PortUnification         bool // client.portUnification: TLS and plaintext on one port

	MinSessionTimeout, MaxSessionTimeout time.Duration // default: 2 and 20 ticks

	MaxClientCnxns          int // per address, 0 means no limit
	MaxCnxns                int // in total, 0 means no limit
	ClientPortListenBacklog int // -1 means the system's default
	SessionlessCnxnTimeout  time.Duration
	TCPKeepAlive            bool

	// MyID is the number in <dataDir>/myid; HasMyID reports whether there is one.
	MyID    uint64
	HasMyID bool

	Membership

	StandaloneEnabled, ReconfigEnabled bool
	FormationNeedsAll                  bool // an ensemble forms only of all listed voters, and adds only connected ones; specific to zkgo
	DynamicConfigFile                  string
	PeerType                           Role // the role in the server list, if it contains one
	QuorumListenOnAllIPs               bool
	QuorumListenAddress                string // "" means the host of this server's server.N line; specific to zkgo
	MultiAddressEnabled                bool
	// PortBindRetry is the number of attempts to bind the quorum port, 0 means
	// unlimited (electionPortBindRetry).
	PortBindRetry                   int
	MultiAddressReachabilityCheck   bool
	MultiAddressReachabilityTimeout time.Duration
	ObserverMasterPort              int // 0 or less: no port for observers
	ObserverMasterBytes             int // observerMaster.sizeLimit, 0 means the server's default
	LocalSessionsEnabled            bool
	LocalSessionsUpgradingEnabled   bool
	LeaderServes                    bool
	ReadOnlyMode                    bool
	LinearizableReads               bool // specific to zkgo

	SnapCount         int
	SnapSizeLimitKB   int64
	AutopurgeRetain   int           // at least 3
	AutopurgeInterval time.Duration // 0 or less disables it
	ForceSync         bool
	FsyncWarning      time.Duration
	SnapshotTrustEmpty,
	DataDirAutocreate,
	DBAutocreate bool
	LogStore string // "wal", "bolt", or "" for the server's default

	JuteMaxBuffer       int     // bytes
	JuteExtraSize       int     // bytes that a server adds to the limit; defaults to JuteMaxBuffer
	LargeRequestMax     int     // bytes of all large requests in total
	LargeRequestAt      int     // bytes from which a request counts as large, -1 means never
	GlobalOutstanding   int     // requests in flight at which the server stops reading
	MemoryCeiling       Ceiling // memory use at which writes are refused; specific to zkgo
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
	QuorumPortUnification                 bool // portUnification: peers may use TLS or plaintext
	FIPSMode                              bool

	// HierarchicalQuorums is "" if a plain majority of the voters decides; otherwise
	// it's the reason why the configured groups and weights aren't supported.
	HierarchicalQuorums string
	// Warnings lists problems that an operator should know about although the file is
	// valid.
	Warnings []Warning
	// Ignored lists ZooKeeper's keys that have no effect in zkgo.
	Ignored []string

	origin   map[string]origin                 // where each key was set last
	myIDFrom string                            // the file MyID was read from, "" if the caller set it
	readFile func(path string) ([]byte, error) // all file access goes through it
	unknown  int                               // number of unknown keys
}

// Membership is the content of the dynamic file: the servers, and which sets of servers form a
// quorum.
type Membership struct {
	Servers       []Server            // sorted by id
	Groups        map[uint64][]uint64 // group.N: the ids of its members, in file order
	Weights       map[uint64]int64    // weight.N as written
	ConfigVersion uint64              // of the membership: the hex suffix of the dynamic file's name
}

// Auth contains the settings for the authentication of clients.
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

// QuorumAuth contains the settings for SASL between servers.
type QuorumAuth struct {
	EnableSASL, ServerRequire, LearnerRequire bool
	ServerContext, LearnerContext             string
	ServicePrincipal                          string
}

// Admin contains the settings of the HTTP admin server.
type Admin struct {
	Enable                                  bool
	Port                                    int
	PortSet                                 bool // Port was set explicitly
	Address                                 string
	CommandURL                              string
	IdleTimeout                             time.Duration
	PortUnification, ForceHTTPS, NeedClient bool
	SnapshotEnabled, RestoreEnabled         bool
	RateLimiterInterval                     time.Duration
	RestoreInterval                         time.Duration // the same key, with a different default
	Profiles                                bool          // admin.pprof.enabled; specific to zkgo
}

// Metrics contains the settings of the metrics provider.
type Metrics struct {
	ClassName     string
	Enabled       bool // whether ClassName is the Prometheus provider
	HTTPHost      string
	HTTPPort      int // Unset: no port for plaintext
	HTTPSPort     int // Unset: no port for TLS; it may be HTTPPort, which then accepts both
	ExportJVMInfo bool

	KeyStore, TrustStore           Store
	NeedClient, WantClient         bool
	EnabledProtocols, CipherSuites []string
	User, Password, PasswordPath   string // of basic authentication; specific to zkgo
	Token, TokenPath               string // of bearer authentication; specific to zkgo
}

// Audit contains the settings of the audit log. All fields except for Enable are specific to zkgo;
// ZooKeeper has them in logback.xml.
type Audit struct {
	Enable        bool
	File          string // "" means the server's own log
	MaxFileSizeKB int64  // size of File at which it's rotated
	MaxBackups    int    // rotated files to keep
}

// Store identifies a key store or a trust store.
type Store struct {
	Location, Password, PasswordPath string
	Type                             string // JKS, PEM, PKCS12, BCFKS, or "" for by extension
}

// TLS contains one of the two sets of TLS keys: ssl.* for clients, ssl.quorum.* for peers.
type TLS struct {
	KeyStore, TrustStore       Store
	Protocol                   string   // "" means TLS 1.2 and 1.3
	EnabledProtocols           []string // empty means Protocol
	CipherSuites               []string // empty means the default list
	ClientAuth                 string   // none, want or need
	HostnameVerification       bool
	ClientHostnameVerification bool
	AllowReverseDNSLookup      bool
	CRL, OCSP                  bool
	CertReload                 bool // client.certReload, sslQuorumReloadCertFiles
	HandshakeDetectionTimeout  time.Duration
}

// FourLetterAll reports whether the whitelist allows all four-letter words.
func (c *Config) FourLetterAll() bool {
	return len(c.FourLetterWhitelist) == 1 && c.FourLetterWhitelist[0] == "*"
}

// Distributed reports whether the configuration describes an ensemble instead of a
// standalone server. It uses ZooKeeper's rule.
func (c *Config) Distributed() bool {
	return !c.StandaloneEnabled || len(c.Voters()) > 1
}

// Voters returns the servers that are participants.
func (m *Membership) Voters() []Server {
	var voters []Server
	for _, s := range m.Servers {
		if s.Role == Participant {
			voters = append(voters, s)
		}
	}
	return voters
}

// Server returns the server with the given id.
func (m *Membership) Server(id uint64) (Server, bool) {
	for _, s := range m.Servers {
		if s.ID == id {
			return s, true
		}
	}
	return Server{}, false
}

// Self returns the line of this server, i.e. the one with MyID.
func (c *Config) Self() (Server, bool) {
	if !c.HasMyID {
		return Server{}, false
	}
	return c.Server(c.MyID)
}

// Default returns the configuration of a server without a file: one standalone server
// on port 2181 with its data in ./zkgo-data.
func Default() *Config {
	c := blank()
	c.setTick(defaults.TickTime)
	c.ClientPort = 2181
	c.DataDir, c.DataLogDir = "./zkgo-data", "./zkgo-data"
	return c
}

// Clone returns a deep copy of c.
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

// blank returns ZooKeeper's defaults, the state before the first line.
func blank() *Config {
	c := &Config{
		TickTime:   defaultTick,
		ClientPort: Unset, SecureClientPort: Unset,
		MaxClientCnxns: defaults.MaxClientCnxns, ClientPortListenBacklog: Unset,
		MinSessionTimeout: defaults.MinSessionTicks * defaultTick, MaxSessionTimeout: defaults.MaxSessionTicks * defaultTick,
		SessionlessCnxnTimeout: defaults.SessionlessTimeout,
		StandaloneEnabled:      true, LeaderServes: true, PortBindRetry: defaults.BindTries,
		MultiAddressReachabilityCheck: true, MultiAddressReachabilityTimeout: time.Second,
		SnapCount: defaults.SnapCount, SnapSizeLimitKB: defaults.SnapBytes >> 10, AutopurgeRetain: minRetain,
		ForceSync: true, FsyncWarning: time.Second,
		DataDirAutocreate: true, DBAutocreate: true,
		JuteMaxBuffer: defaultJute, JuteExtraSize: defaultJute,
		LargeRequestMax: defaults.LargeRequestMax, LargeRequestAt: Unset, GlobalOutstanding: defaults.GlobalOutstanding,
		MemoryCeiling: Ceiling{Percent: 80}, ConnThrottle: defaultConnThrottle(), RequestThrottle: defaultRequestThrottle(),
		ContainerCheckInterval: defaults.ContainerInterval, ContainerMaxPerMinute: defaults.ContainerMaxPerMin,
		Auth: Auth{DigestEnabled: true, DigestAlg: defaults.DigestAlg, SASLServerContext: "Server", SSLScheme: "x509"},
		QuorumAuth: QuorumAuth{ServerContext: "QuorumServer", LearnerContext: "QuorumLearner",
			ServicePrincipal: "zkquorum/localhost"},
		Admin: Admin{Enable: true, Port: 8080, Address: "127.0.0.1", CommandURL: "/commands",
			IdleTimeout: 30 * time.Second, SnapshotEnabled: true, RestoreEnabled: true,
			// Documented as 5 minutes, but ZooKeeper 3.9 interprets the number as
			// microseconds.
			RateLimiterInterval: 300 * time.Millisecond, RestoreInterval: 5 * time.Minute},
		Metrics: defaultMetricsProvider(),
		Audit:   Audit{MaxFileSizeKB: 10240, MaxBackups: 10},
		TLS:     defaultTLS(), QuorumTLS: defaultTLS(),
		FIPSMode: true,
		origin:   map[string]origin{},
		readFile: smallfile.Read,
	}
	c.QuorumTLS.ClientHostnameVerification, c.QuorumTLS.AllowReverseDNSLookup = true, true
	return c
}

// defaultMetricsProvider listens on every address, but only if the file names the provider.
func defaultMetricsProvider() Metrics {
	return Metrics{
		ClassName: defaultMetrics, HTTPHost: "0.0.0.0", HTTPPort: 7000, HTTPSPort: Unset, ExportJVMInfo: true,
		NeedClient: true, WantClient: true,
	}
}

func defaultTLS() TLS {
	return TLS{ClientAuth: "need", HostnameVerification: true, HandshakeDetectionTimeout: 5 * time.Second}
}

const (
	defaultTick    = defaults.FileTickTime
	defaultJute    = defaults.JuteMaxBuffer
	minRetain      = defaults.SnapRetain
	defaultMetrics = "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider"
)
