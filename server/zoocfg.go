package server

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/internal/auth/jaas"
	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/smallfile"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/raftfsm"
)

// LoadOption changes how [LoadConfig] reads a file, e.g. [Formats] lets it read the key stores
// that the file names.
type LoadOption interface {
	// LoadOption only marks the type.
	LoadOption()
}

// Warnings returns [LoadConfig]'s warnings, each with the file and the line, e.g. about an
// unknown key. A server starts in spite of them and doesn't log them.
func (c Config) Warnings() []string {
	if c.zooCfg == nil {
		return nil
	}
	list := make([]string, len(c.zooCfg.Warnings))
	for i, w := range c.zooCfg.Warnings {
		list[i] = w.String()
	}
	return list
}

// LoadConfig reads a zoo.cfg and translates it. It returns all reasons why Start would
// refuse the configuration, except for data and ports that are in use, joined into one
// error. Suspicious settings, e.g. unknown keys, are in [Config.Warnings]. It reads the JAAS
// file and, with [Formats] among opts, the key stores that the file names. Use
// [Config.CheckDirectories] for the directories.
func LoadConfig(path string, opts ...LoadOption) (Config, error) {
	var own []zoocfg.Option
	var formats Formats
	for _, o := range opts {
		switch o := o.(type) {
		case Formats:
			formats = o
		case zoocfg.Option:
			own = append(own, o)
		default:
			return Config{}, fmt.Errorf("unsupported option of type %T", o)
		}
	}
	z, err := zoocfg.Parse(path, own...)
	if err != nil {
		return Config{}, err
	}
	return fromZooCfg(z, formats)
}

// fromZooCfg is LoadConfig for a file that has been read.
func fromZooCfg(z *zoocfg.Config, f Formats) (Config, error) {
	c, err := translate(z)
	c.Env.Formats = f
	if err = errors.Join(err, c.verify()); err != nil {
		return Config{}, err
	}
	return c, nil
}

// translate is fromZooCfg without the checks that apply to any Config.
func translate(z *zoocfg.Config) (Config, error) {
	c := Config{
		DataDir: z.DataDir, NoAutocreate: !z.DataDirAutocreate,
		TickTime: z.TickTime, MinSessionTimeout: z.MinSessionTimeout, MaxSessionTimeout: z.MaxSessionTimeout,
		LinearizableReads: z.LinearizableReads, ReadOnlyMode: z.ReadOnlyMode, LocalSessions: z.LocalSessionsEnabled,
		FourLetterWords: z.FourLetterWhitelist,
		Quorum: Quorum{
			ID: z.MyID, ListenAll: z.QuorumListenOnAllIPs, ListenHost: z.QuorumListenAddress,
			InitLimit: z.InitLimit, SyncLimit: z.SyncLimit, Reconfig: z.ReconfigEnabled, NeedsAll: z.FormationNeedsAll,
		},
		Log: Log{Dir: z.DataLogDir, Store: z.LogStore, SnapCount: z.SnapCount, SnapBytes: z.SnapSizeLimitKB << 10, SnapRetain: z.AutopurgeRetain},
		Limits: Limits{
			MaxClientCnxns: z.MaxClientCnxns, MaxCnxns: z.MaxCnxns, SessionlessTimeout: z.SessionlessCnxnTimeout,
			TCPKeepAlive: z.TCPKeepAlive, ListenBacklog: z.ClientPortListenBacklog,
			JuteMaxBuffer: z.JuteMaxBuffer, GlobalOutstanding: z.GlobalOutstanding,
		},
		Znodes: Znodes{
			ExtendedTypes: z.ExtendedTypes, Emulate353TTL: z.Emulate353TTL, EnforceQuota: z.EnforceQuota,
			ContainerInterval: z.ContainerCheckInterval, ContainerMaxPerMin: z.ContainerMaxPerMinute, ContainerMaxNeverUsed: z.ContainerMaxNeverUsed,
		},
		Auth: Auth{
			SkipACL: z.SkipACL, DigestDisabled: !z.Auth.DigestEnabled, DigestAlg: z.Auth.DigestAlg, SuperDigest: z.Auth.SuperDigest,
			EnsembleNames: z.Auth.EnsembleNames,
		},
		zooCfg: z,
	}
	c.limitsFromZooCfg(z)
	if c.Quorum.BindTries = z.PortBindRetry; c.Quorum.BindTries == 0 {
		c.Quorum.BindTries = -1
	}
	if c.Limits.MaxClientCnxns == 0 {
		c.Limits.MaxClientCnxns = -1
	}
	if z.ClientPort != zoocfg.Unset {
		c.ClientAddr = net.JoinHostPort(z.ClientPortAddress, strconv.Itoa(z.ClientPort))
	}
	if z.ObserverMasterPort > 0 {
		c.Quorum.ObserverMasterAddr, c.Quorum.ObserverMasterBytes = net.JoinHostPort(observerMasterHost(z), strconv.Itoa(z.ObserverMasterPort)), z.ObserverMasterBytes
	}
	errs := []error{c.tlsFromZooCfg(z), c.quorumFromZooCfg(z), c.quorumSASLFromZooCfg(z), c.saslFromZooCfg(z), c.adminFromZooCfg(z), c.metricsFromZooCfg(z)}
	c.auditFromZooCfg(z)
	if z.Distributed() {
		if !z.HasMyID {
			errs = append(errs, fmt.Errorf("myid file is missing: %s names the servers of an ensemble, but %s does not say which one this is",
				z.Path, filepath.Join(z.DataDir, "myid")))
		}
		errs = append(errs, refuse(z))
		c.Quorum.Members, c.Quorum.Ensemble = membersOf(z), !z.StandaloneEnabled
		c.Quorum.LeaderNoClients, c.Quorum.MultiAddress = !z.LeaderServes, z.MultiAddressEnabled
	}
	return c, errors.Join(errs...)
}

// observerMasterHost returns the host of the port for observers. As in ZooKeeper, it is the
// host of the quorum port. A standalone server has no quorum port, so it is the host of the
// client port.
func observerMasterHost(z *zoocfg.Config) string {
	self, ok := z.Self()
	switch {
	case !z.Distributed() || !ok:
		return z.ClientPortAddress
	case z.QuorumListenOnAllIPs:
		return ""
	}
	return strings.Trim(cmp.Or(z.QuorumListenAddress, self.Addrs[0].Host), "[]")
}

// refuse reports settings that an ensemble doesn't support. A standalone server doesn't
// use them, and ZooKeeper ignores them there.
func refuse(z *zoocfg.Config) error {
	if z.HierarchicalQuorums != "" {
		return fmt.Errorf("%s: %s", z.Path, z.HierarchicalQuorums)
	}
	return nil
}

// membersOf translates the server lines.
func membersOf(z *zoocfg.Config) []raftfsm.Member {
	var ms []raftfsm.Member
	for _, s := range z.Servers {
		a := s.Addrs[0]
		m := raftfsm.Member{
			ID:            s.ID,
			QuorumAddr:    net.JoinHostPort(a.Host, strconv.Itoa(a.QuorumPort)),
			ElectionAddr:  net.JoinHostPort(a.Host, strconv.Itoa(a.ElectionPort)),
			Observer:      s.Role == zoocfg.Observer,
			ConfigNodeTxt: s.Line(),
		}
		for _, more := range s.Addrs[1:] {
			m.Alternates = append(m.Alternates, net.JoinHostPort(more.Host, strconv.Itoa(more.QuorumPort)))
		}
		if s.ClientHost != "" {
			m.ClientAddr = net.JoinHostPort(s.ClientHost, strconv.Itoa(s.ClientPort))
		}
		ms = append(ms, m)
	}
	return ms
}

// limitsFromZooCfg translates the settings that limit the load.
func (c *Config) limitsFromZooCfg(z *zoocfg.Config) {
	c.Auth.EagerACL = z.EnableEagerACLCheck
	c.Limits.LargeRequestMax = z.LargeRequestMax
	if z.LargeRequestAt != zoocfg.Unset {
		c.Limits.LargeRequestAbove = max(z.LargeRequestAt, 1) // every request is longer than 1
	}
	c.Limits.MemoryCeiling = z.MemoryCeiling.Bytes
	if p := z.MemoryCeiling.Percent; p > 0 {
		c.Limits.MemoryCeiling = limits.SystemMemory() / 100 * int64(p)
	}
	r := z.RequestThrottle
	c.Limits.RequestThrottle = RequestThrottle{
		MaxRequests: r.MaxRequests, StallTime: r.StallTime, DropStale: r.DropStale, StaleLatency: r.StaleLatency, OpWait: r.OpWaitTime,
	}
	t := z.ConnThrottle
	if t.Tokens == 0 {
		return
	}
	c.Limits.ConnThrottle = &ConnThrottle{
		Tokens: t.Tokens, FillTime: t.FillTime, FillCount: t.FillCount, FreezeTime: t.FreezeTime,
		DropIncrease: t.DropIncrease, DropDecrease: t.DropDecrease, DecreaseRatio: t.DecreaseRatio, New: 1, Renewed: 1,
	}
	if !t.WeightEnabled {
		return
	}
	// As in ZooKeeper, no session weighs less than a local one, and the bucket is
	// counted in new global sessions. A session weighs as much as a local one if
	// sessions are local.
	global, renewed := max(t.GlobalSession, t.LocalSession), max(t.RenewedSession, t.LocalSession)
	c.Limits.ConnThrottle.Tokens *= global
	c.Limits.ConnThrottle.FillCount *= global
	c.Limits.ConnThrottle.New, c.Limits.ConnThrottle.Renewed = global, renewed
	if z.LocalSessionsEnabled {
		c.Limits.ConnThrottle.New = t.LocalSession
	}
}

// adminFromZooCfg translates the admin.* settings. As in ZooKeeper, a member of an ensemble
// serves without the AdminServer if its port is in use, and a standalone server doesn't
// start. We make an exception for the default port, because other programs often use it.
func (c *Config) adminFromZooCfg(z *zoocfg.Config) error {
	a := &z.Admin
	if !a.Enable {
		return nil
	}
	security, err := adminTLSFromZooCfg(z)
	if err != nil {
		return err
	}
	c.Admin = &Admin{
		Addr: net.JoinHostPort(a.Address, strconv.Itoa(a.Port)), CommandURL: a.CommandURL,
		IdleTimeout: a.IdleTimeout, Optional: !a.PortSet || z.Distributed(), TLS: security, Profiles: a.Profiles,
		NoSnapshot: !a.SnapshotEnabled, NoRestore: !a.RestoreEnabled, SnapshotInterval: a.RateLimiterInterval, RestoreInterval: a.RestoreInterval,
	}
	return nil
}

// metricsFromZooCfg translates the metricsProvider.* settings.
func (c *Config) metricsFromZooCfg(z *zoocfg.Config) error {
	m := &z.Metrics
	if !m.Enabled {
		return nil
	}
	c.Metrics = &Metrics{Process: m.ExportJVMInfo, User: m.User, Password: m.Password}
	at := func(port int) string {
		if port == zoocfg.Unset {
			return ""
		}
		return net.JoinHostPort(m.HTTPHost, strconv.Itoa(port))
	}
	c.Metrics.Addr, c.Metrics.SecureAddr = at(m.HTTPPort), at(m.HTTPSPort)
	var errs []error
	for _, file := range []struct {
		key, path string
		to        *string
	}{{"passwordPath", m.PasswordPath, &c.Metrics.Password}, {"tokenPath", m.TokenPath, &c.Metrics.Token}} {
		if file.path == "" {
			continue
		}
		text, err := smallfile.Read(file.path)
		if *file.to = strings.TrimSpace(string(text)); err == nil && *file.to == "" {
			err = fmt.Errorf("%s is empty", file.path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("metricsProvider.auth.%s: %w", file.key, err))
		}
	}
	var err error
	c.Metrics.TLS, err = metricsTLSFromZooCfg(m)
	return errors.Join(append(errs, err)...)
}

// metricsTLSFromZooCfg translates the TLS settings of the metrics. As in ZooKeeper, clients
// need certificates unless the file says otherwise, and changed files are read again.
func metricsTLSFromZooCfg(m *zoocfg.Metrics) (*AdminTLS, error) {
	if m.HTTPSPort == zoocfg.Unset {
		return nil, nil
	}
	auth := "none"
	switch {
	case m.KeyStore.Location == "":
		return nil, zoocfg.NotSet("metricsProvider.ssl.keyStore.location", "metricsProvider.httpsPort needs a certificate")
	case m.NeedClient && m.TrustStore.Location == "":
		return nil, zoocfg.NotSet("metricsProvider.ssl.trustStore.location", "clients need certificates, unless metricsProvider.ssl.need.client.auth=false")
	case m.NeedClient:
		auth = "need"
	case m.WantClient && m.TrustStore.Location != "":
		auth = "want"
	}
	return &AdminTLS{KeyStores: KeyStores{
		Key: KeyStore(m.KeyStore), Trust: KeyStore(m.TrustStore), ClientAuth: auth,
		Protocols: m.EnabledProtocols, CipherSuites: m.CipherSuites, Reload: true,
	}}, nil
}

// auditFromZooCfg translates the audit.* settings.
func (c *Config) auditFromZooCfg(z *zoocfg.Config) {
	if a := &z.Audit; a.Enable {
		c.Audit = &Audit{Path: a.File, MaxBytes: a.MaxFileSizeKB << 10, Backups: a.MaxBackups}
	}
}

// tlsFromZooCfg translates the ssl.* settings for clients, if a port uses them.
func (c *Config) tlsFromZooCfg(z *zoocfg.Config) error {
	secure, unified := z.SecureClientPort != zoocfg.Unset, z.PortUnification && c.ClientAddr != ""
	if !secure && !unified {
		return nil
	}
	t := &z.TLS
	switch {
	case z.Auth.SSLScheme != schemes.X509:
		return fmt.Errorf("ssl.authProvider is %q: certificates are identities of the scheme %s only", z.Auth.SSLScheme, schemes.X509)
	case t.KeyStore.Location == "":
		return zoocfg.NotSet("ssl.keyStore.location", "a port with TLS needs a certificate")
	}
	if secure {
		c.SecureAddr = net.JoinHostPort(z.SecureClientPortAddress, strconv.Itoa(z.SecureClientPort))
	}
	c.PortUnification = unified
	c.TLS = &TLS{
		KeyStores: KeyStores{
			Key: KeyStore(t.KeyStore), Trust: KeyStore(t.TrustStore), ClientAuth: t.ClientAuth,
			Protocols: protocolsOf(t), CipherSuites: t.CipherSuites,
			VerifyClientHost: t.HostnameVerification && t.ClientHostnameVerification, ReverseDNS: t.AllowReverseDNSLookup, Reload: t.CertReload,
			CRL: t.CRL, OCSP: t.OCSP,
		},
		SuperUser: z.Auth.X509SuperUser,
	}
	return nil
}

// protocolsOf returns the TLS versions to offer. ssl.protocol limits them only if it
// names a version.
func protocolsOf(t *zoocfg.TLS) []string {
	if len(t.EnabledProtocols) == 0 && strings.HasPrefix(t.Protocol, "TLSv") {
		return []string{t.Protocol}
	}
	return t.EnabledProtocols
}

// quorumFromZooCfg translates sslQuorum, portUnification and ssl.quorum.*.
func (c *Config) quorumFromZooCfg(z *zoocfg.Config) error {
	if !z.SSLQuorum && !z.QuorumPortUnification {
		return nil
	}
	t := &z.QuorumTLS
	switch {
	case t.KeyStore.Location == "":
		return zoocfg.NotSet("ssl.quorum.keyStore.location", "sslQuorum and portUnification need a certificate")
	case t.TrustStore.Location == "":
		return zoocfg.NotSet("ssl.quorum.trustStore.location", "sslQuorum and portUnification need the certificates to trust")
	}
	c.Quorum.TLS = &QuorumTLS{
		KeyStores: KeyStores{
			Key: KeyStore(t.KeyStore), Trust: KeyStore(t.TrustStore), ClientAuth: t.ClientAuth,
			Protocols: protocolsOf(t), CipherSuites: t.CipherSuites,
			VerifyClientHost: t.HostnameVerification && t.ClientHostnameVerification,
			ReverseDNS:       t.AllowReverseDNSLookup, Reload: t.CertReload,
			CRL: t.CRL, OCSP: t.OCSP,
		},
		VerifyHost: t.HostnameVerification,
		DialPlain:  !z.SSLQuorum, AcceptPlain: z.QuorumPortUnification,
		DetectionTimeout: t.HandshakeDetectionTimeout,
	}
	return nil
}

// quorumSASLFromZooCfg translates quorum.auth.* and reads the JAAS file. As in ZooKeeper,
// both sections must exist, even if only one is required, and a standalone server reads
// neither unless it has a port for observers.
func (c *Config) quorumSASLFromZooCfg(z *zoocfg.Config) error {
	q, file := &z.QuorumAuth, z.Auth.JAASFile
	if !q.EnableSASL || !z.Distributed() && z.ObserverMasterPort <= 0 {
		return nil
	}
	if file == "" {
		return fmt.Errorf("quorum.auth.enableSasl: %w", zoocfg.NotSet("java.security.auth.login.config",
			"expected the JAAS file with the sections "+q.ServerContext+" and "+q.LearnerContext))
	}
	text, err := smallfile.Read(file)
	if err != nil {
		return fmt.Errorf("quorum.auth.enableSasl: java.security.auth.login.config: %w", err)
	}
	s := &QuorumSASL{LearnerRequire: q.LearnerRequire, ServerRequire: q.ServerRequire}
	if s.Users, err = jaas.Users(string(text), q.ServerContext); err != nil {
		return fmt.Errorf("quorum.auth.server.saslLoginContext: %s: %w", file, err)
	}
	if s.User, s.Password, err = jaas.Login(string(text), q.LearnerContext); err != nil {
		return fmt.Errorf("quorum.auth.learner.saslLoginContext: %s: %w", file, err)
	}
	c.Quorum.SASL = s
	return nil
}

// superByPassword is a user name. The user's password may be in the configuration instead of
// the JAAS file.
const superByPassword = "super"

// saslFromZooCfg translates the authentication settings: which clients must
// authenticate, and how SASL does it.
func (c *Config) saslFromZooCfg(z *zoocfg.Config) error {
	a := &z.Auth
	switch {
	case a.RequireClientSASL:
		c.Auth.Require = []string{schemes.SASL}
	case a.EnforceEnabled:
		c.Auth.Require = a.EnforceSchemes
	}
	for _, class := range a.Providers {
		c.Auth.X509 = c.Auth.X509 || strings.HasSuffix(class, ".X509AuthenticationProvider")
		c.Auth.SASLScheme = c.Auth.SASLScheme || strings.HasSuffix(class, ".SASLAuthenticationProvider")
		c.Auth.EnsembleScheme = c.Auth.EnsembleScheme || strings.HasSuffix(class, ".EnsembleAuthenticationProvider")
		c.Auth.KeyScheme = c.Auth.KeyScheme || strings.HasSuffix(class, ".KeyAuthenticationProvider")
	}
	if a.JAASFile == "" {
		return nil
	}
	text, err := smallfile.Read(a.JAASFile)
	if err != nil {
		return fmt.Errorf("java.security.auth.login.config: %w", err)
	}
	section := cmp.Or(a.SASLServerContext, defaultSection)
	users, err := jaas.Users(string(text), section)
	if errors.Is(err, jaas.ErrNoSection) && section == defaultSection && len(c.Auth.Require) == 0 {
		// The file has another purpose, e.g. the quorum's SASL.
		return nil
	}
	if err != nil {
		return fmt.Errorf("java.security.auth.login.config: %s: %w", a.JAASFile, err)
	}
	if a.SASLSuperPassword != "" {
		users[superByPassword] = a.SASLSuperPassword
	}
	c.Auth.SASL = &SASL{Users: users, SuperUser: a.SASLSuperUser, AllowFailed: a.AllowSASLFailed}
	return nil
}

// defaultSection is the server's section of a JAAS file.
const defaultSection = "Server"

// adminTLSFromZooCfg translates the TLS settings. As in ZooKeeper, we use the key store
// of the ports between servers.
func adminTLSFromZooCfg(z *zoocfg.Config) (*AdminTLS, error) {
	a, t := &z.Admin, &z.QuorumTLS
	if !a.ForceHTTPS && !a.PortUnification {
		if a.NeedClient {
			return nil, errors.New("admin.needClientAuth: a certificate can only be asked for with TLS: set admin.forceHttps too")
		}
		return nil, nil
	}
	if t.KeyStore.Location == "" {
		return nil, fmt.Errorf("admin.portUnification, admin.forceHttps: %w", zoocfg.NotSet("ssl.quorum.keyStore.location", "the AdminServer's certificate is there"))
	}
	auth := "none"
	if a.NeedClient {
		auth = "need"
	}
	return &AdminTLS{
		KeyStores: KeyStores{
			Key: KeyStore(t.KeyStore), Trust: KeyStore(t.TrustStore), ClientAuth: auth,
			Protocols: protocolsOf(t), CipherSuites: t.CipherSuites, Reload: t.CertReload,
			CRL: t.CRL, OCSP: t.OCSP,
		},
		Only: a.ForceHTTPS,
	}, nil
}
