package zoocfg

import (
	"strconv"
	"strings"
	"time"
)

// A key is a known key of the configuration file.
type key struct {
	name    string
	set     setter
	ignored bool // a key of ZooKeeper's without an effect in zkgo
}

// keyTable lists all known keys. Their order has no meaning.
func keyTable() []key {
	var all []key
	for _, part := range [][]key{
		listenerKeys(), ensembleKeys(), storageKeys(), limitKeys(), throttleKeys(), featureKeys(),
		authKeys(), quorumAuthKeys(), adminKeys(), metricsKeys(), auditKeys(), checkedKeys(),
	} {
		all = append(all, part...)
	}
	all = append(all, tlsKeys("ssl.", func(c *Config) *TLS { return &c.TLS })...)
	all = append(all, tlsKeys("ssl.quorum.", func(c *Config) *TLS { return &c.QuorumTLS })...)
	for _, name := range ignoredKeys() {
		all = append(all, key{name: name, ignored: true})
	}
	return all
}

// knownKeys is keyTable by name. It's read-only.
var knownKeys = func() map[string]key {
	m := map[string]key{}
	for _, k := range keyTable() {
		m[k.name] = k
	}
	return m
}()

func listenerKeys() []key {
	return []key{
		{name: "clientPort", set: portNumber(func(c *Config) *int { return &c.ClientPort })},
		{name: "clientPortAddress", set: setAddress(func(c *Config) *string { return &c.ClientPortAddress })},
		{name: "secureClientPort", set: portNumber(func(c *Config) *int { return &c.SecureClientPort })},
		{name: "secureClientPortAddress", set: setAddress(func(c *Config) *string { return &c.SecureClientPortAddress })},
		{name: "client.portUnification", set: boolean(func(c *Config) *bool { return &c.PortUnification })},
		{name: "clientPortListenBacklog", set: integer(anyInt, func(c *Config) *int { return &c.ClientPortListenBacklog })},
		{name: "maxClientCnxns", set: integer(anyInt, func(c *Config) *int { return &c.MaxClientCnxns })},
		{name: "maxCnxns", set: insteadBelow("maxCnxns", 0, "0", propInt(0, func(c *Config) *int { return &c.MaxCnxns }))},
		{name: "nio.sessionlessCnxnTimeout", set: propMillis(1, func(c *Config) *time.Duration { return &c.SessionlessCnxnTimeout })},
		{name: "tcpKeepAlive", set: boolean(func(c *Config) *bool { return &c.TCPKeepAlive })},
		{name: "tickTime", set: millis(0, (*Config).setTick, func(c *Config) *time.Duration { return &c.TickTime })},
		{name: "minSessionTimeout", set: millis(Unset, func(c *Config, d time.Duration) {
			c.setSessionTimeout("minSessionTimeout", &c.MinSessionTimeout, d, 2)
		}, func(c *Config) *time.Duration { return &c.MinSessionTimeout })},
		{name: "maxSessionTimeout", set: millis(Unset, func(c *Config, d time.Duration) {
			c.setSessionTimeout("maxSessionTimeout", &c.MaxSessionTimeout, d, 20)
		}, func(c *Config) *time.Duration { return &c.MaxSessionTimeout })},
	}
}

const anyInt = -1 << 31

func ensembleKeys() []key {
	return []key{
		{name: "initLimit", set: integer(0, func(c *Config) *int { return &c.InitLimit })},
		{name: "syncLimit", set: integer(0, func(c *Config) *int { return &c.SyncLimit })},
		{name: "standaloneEnabled", set: boolean(func(c *Config) *bool { return &c.StandaloneEnabled })},
		{name: "reconfigEnabled", set: boolean(func(c *Config) *bool { return &c.ReconfigEnabled })},
		{name: "formationNeedsAll", set: boolean(func(c *Config) *bool { return &c.FormationNeedsAll })},
		{name: "dynamicConfigFile", set: text(func(c *Config) *string { return &c.DynamicConfigFile })},
		{name: "peerType", set: takes(setPeerType, func(c *Config) string { return c.PeerType.String() })},
		{name: "quorumListenOnAllIPs", set: boolean(func(c *Config) *bool { return &c.QuorumListenOnAllIPs })},
		{name: "quorumListenAddress", set: setAddress(func(c *Config) *string { return &c.QuorumListenAddress })},
		{name: "electionPortBindRetry", set: propInt(0, func(c *Config) *int { return &c.PortBindRetry })},
		{name: "multiAddress.enabled", set: boolean(func(c *Config) *bool { return &c.MultiAddressEnabled })},
		{name: "multiAddress.reachabilityCheckEnabled", set: boolean(func(c *Config) *bool { return &c.MultiAddressReachabilityCheck })},
		{name: "multiAddress.reachabilityCheckTimeoutMs", set: millis(anyInt, func(c *Config, d time.Duration) { c.MultiAddressReachabilityTimeout = d },
			func(c *Config) *time.Duration { return &c.MultiAddressReachabilityTimeout })},
		{name: "observerMasterPort", set: integer(anyInt, func(c *Config) *int { return &c.ObserverMasterPort })},
		{name: "observerMaster.sizeLimit", set: propInt(0, func(c *Config) *int { return &c.ObserverMasterBytes })},
		{name: "localSessionsEnabled", set: boolean(func(c *Config) *bool { return &c.LocalSessionsEnabled })},
		{name: "localSessionsUpgradingEnabled", set: boolean(func(c *Config) *bool { return &c.LocalSessionsUpgradingEnabled })},
		{name: "leaderServes", set: onUnlessNo(func(c *Config) *bool { return &c.LeaderServes })},
		{name: "readonlymode.enabled", set: boolean(func(c *Config) *bool { return &c.ReadOnlyMode })},
		{name: "linearizableReads", set: boolean(func(c *Config) *bool { return &c.LinearizableReads })},
		{name: "sslQuorum", set: boolean(func(c *Config) *bool { return &c.SSLQuorum })},
		{name: "portUnification", set: boolean(func(c *Config) *bool { return &c.QuorumPortUnification })},
		{name: "sslQuorumReloadCertFiles", set: boolean(func(c *Config) *bool { return &c.QuorumTLS.CertReload })},
	}
}

func storageKeys() []key {
	return []key{
		{name: "dataDir", set: takes((*Config).setDataDir, func(c *Config) string { return c.DataDir })},
		{name: "dataLogDir", set: takes((*Config).setDataLogDir, func(c *Config) string { return c.DataLogDir })},
		{name: "snapCount", set: insteadBelow("snapCount", 1, "2", propInt(1, func(c *Config) *int { return &c.SnapCount }))},
		{name: "snapSizeLimitInKb", set: propLong(anyInt, func(c *Config) *int64 { return &c.SnapSizeLimitKB })},
		{name: "autopurge.snapRetainCount", set: integer(anyInt, func(c *Config) *int { return &c.AutopurgeRetain })},
		{name: "autopurge.purgeInterval", set: takes(setPurgeInterval, func(c *Config) string { return strconv.Itoa(int(c.AutopurgeInterval / time.Hour)) })},
		unused("forceSync", onUnlessNo(func(c *Config) *bool { return &c.ForceSync })),
		unused("fsync.warningthresholdms", propMillis(anyInt, func(c *Config) *time.Duration { return &c.FsyncWarning })),
		unused("snapshot.trust.empty", boolean(func(c *Config) *bool { return &c.SnapshotTrustEmpty })),
		{name: "datadir.autocreate", set: boolean(func(c *Config) *bool { return &c.DataDirAutocreate })},
		unused("db.autocreate", boolean(func(c *Config) *bool { return &c.DBAutocreate })),
		{name: "logStore", set: oneOf(func(c *Config) *string { return &c.LogStore }, "wal", "bolt")},
	}
}

func featureKeys() []key {
	return []key{
		{name: "4lw.commands.whitelist", set: takes(setWhitelist, func(c *Config) string { return strings.Join(c.FourLetterWhitelist, ",") })},
		{name: "skipACL", set: offUnlessYes(func(c *Config) *bool { return &c.SkipACL })},
		{name: "extendedTypesEnabled", set: boolean(func(c *Config) *bool { return &c.ExtendedTypes })},
		{name: "emulate353TTLNodes", set: boolean(func(c *Config) *bool { return &c.Emulate353TTL })},
		{name: "enforceQuota", set: boolean(func(c *Config) *bool { return &c.EnforceQuota })},
		{name: "enableEagerACLCheck", set: boolean(func(c *Config) *bool { return &c.EnableEagerACLCheck })},
		unused("fips-mode", boolean(func(c *Config) *bool { return &c.FIPSMode })),
	}
}

func adminKeys() []key {
	return []key{
		{name: "admin.enableServer", set: boolean(func(c *Config) *bool { return &c.Admin.Enable })},
		{name: "admin.serverPort", set: takes(setAdminPort, func(c *Config) string { return strconv.Itoa(c.Admin.Port) })},
		{name: "admin.serverAddress", set: setListenAddress(func(c *Config) *string { return &c.Admin.Address })},
		{name: "admin.commandURL", set: takes(setCommandURL, func(c *Config) string { return c.Admin.CommandURL })},
		{name: "admin.idleTimeout", set: propMillis(0, func(c *Config) *time.Duration { return &c.Admin.IdleTimeout })},
		{name: "admin.portUnification", set: boolean(func(c *Config) *bool { return &c.Admin.PortUnification })},
		{name: "admin.forceHttps", set: boolean(func(c *Config) *bool { return &c.Admin.ForceHTTPS })},
		{name: "admin.needClientAuth", set: boolean(func(c *Config) *bool { return &c.Admin.NeedClient })},
		{name: "admin.snapshot.enabled", set: boolean(func(c *Config) *bool { return &c.Admin.SnapshotEnabled })},
		{name: "admin.restore.enabled", set: boolean(func(c *Config) *bool { return &c.Admin.RestoreEnabled })},
		{name: "admin.rateLimiterIntervalInMS", set: rateLimiter()},
		{name: "admin.pprof.enabled", set: boolean(func(c *Config) *bool { return &c.Admin.Profiles })}, // specific to zkgo
	}
}

func setAdminPort(c *Config, v string) error {
	n, err := propertyNumber(v, 0, 65535)
	if err != nil {
		return err
	}
	c.Admin.Port, c.Admin.PortSet = int(n), true
	return nil
}

func setCommandURL(c *Config, v string) error {
	if !strings.HasPrefix(v, "/") {
		return expected("a path that begins with /", v)
	}
	c.Admin.CommandURL = v
	return nil
}

func setWhitelist(c *Config, v string) error {
	c.FourLetterWhitelist = commaList(v)
	for _, word := range c.FourLetterWhitelist {
		if word == "*" {
			c.FourLetterWhitelist = []string{"*"}
			break
		}
	}
	return nil
}
