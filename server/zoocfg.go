package server

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/ops/audit"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/raftfsm"
)

// LoadOption changes how [LoadConfig] reads a file. Only packages of this module have
// any.
type LoadOption = zoocfg.Option

// LoadConfig reads a zoo.cfg and translates it. It reports everything that would make
// Start refuse it, except for data and ports that are in use; its error joins all that
// it finds. It reads the JAAS file and the key stores that the file names. Use
// [CheckDirectories] for the directories.
func LoadConfig(path string, opts ...LoadOption) (Config, error) {
	z, err := zoocfg.Parse(path, opts...)
	if err != nil {
		return Config{}, err
	}
	return fromZooCfg(z)
}

// fromZooCfg is LoadConfig for a file that has been read.
func fromZooCfg(z *zoocfg.Config) (Config, error) {
	c, err := translate(z)
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
			InitLimit: z.InitLimit, SyncLimit: z.SyncLimit, Reconfig: z.ReconfigEnabled,
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
	errs := []error{c.tlsFromZooCfg(z), c.quorumFromZooCfg(z), c.quorumSASLFromZooCfg(z), c.saslFromZooCfg(z), c.adminFromZooCfg(z)}
	c.metricsFromZooCfg(z)
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

// adminFromZooCfg translates the admin.* settings. As in ZooKeeper, a member of an
// ensemble serves without the AdminServer if its port is in use, and a standalone server
// doesn't start. We make an exception for the default port, which another program has
// often taken.
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
func (c *Config) metricsFromZooCfg(z *zoocfg.Config) {
	if m := &z.Metrics; m.Enabled {
		c.Metrics = &Metrics{Addr: net.JoinHostPort(m.HTTPHost, strconv.Itoa(m.HTTPPort)), Process: m.ExportJVMInfo}
	}
}

// auditFromZooCfg translates the audit.* settings.
func (c *Config) auditFromZooCfg(z *zoocfg.Config) {
	if a := &z.Audit; a.Enable {
		c.Audit = &Audit{File: audit.FileOptions{Path: a.File, MaxBytes: a.MaxFileSizeKB << 10, Backups: a.MaxBackups}}
	}
}
