package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/raftfsm"
)

// check reports all settings that can't work. The defaults must be set.
func (c *Config) check() error {
	errs := []error{schemes.CheckNames(c.providerNames(), c.Auth.KeyScheme), c.Quorum.SASL.check()}
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	wrong(c.Quorum.ID > raftfsm.MaxServer, "server id %d: want 0 to %d", c.Quorum.ID, raftfsm.MaxServer)
	wrong(!c.Memory && c.DataDir == "", "no data directory: set DataDir, or Memory for an in-memory server")
	wrong(c.MinSessionTimeout > c.MaxSessionTimeout, "minSessionTimeout %v is above maxSessionTimeout %v", c.MinSessionTimeout, c.MaxSessionTimeout)
	wrong(c.TickTime < time.Millisecond, "tickTime %v: want at least 1ms", c.TickTime)
	wrong((c.SecureAddr != "" || c.PortUnification) && c.TLS == nil, "SecureAddr and PortUnification need TLS")
	wrong(c.Metrics != nil && c.Metrics.SecureAddr != "" && c.Metrics.TLS == nil, "Metrics: SecureAddr needs TLS")
	wrong(schemes.NewDigest(c.Auth.DigestAlg) == nil, "unknown DigestAlg %q", c.Auth.DigestAlg)
	unlisted := c.Quorum.ID <= raftfsm.MaxServer && c.distributed() && !c.listed()
	wrong(unlisted, "server id %d is not among the servers of the ensemble: add its server.%[1]d line, or correct the myid file in dataDir", c.Quorum.ID)
	return errors.Join(errs...)
}

// providerNames returns the schemes of the providers.
func (c *Config) providerNames() (names []string) {
	for _, p := range c.Auth.Providers {
		names = append(names, p.Scheme())
	}
	return names
}

func (c *Config) listed() bool {
	for _, m := range c.Quorum.Members {
		if m.ID == c.Quorum.ID {
			return true
		}
	}
	return false
}

// verify reports all reasons why Start would refuse a configuration, except for reasons that
// need the data or a port. It also reads the files that the configuration names. Every
// command that reads a configuration file calls it, through LoadConfig, so all commands
// accept the same files.
func (c Config) verify() error {
	c = c.withDefaults()
	errs := []error{c.check(), raftfsm.SameAddress(c.Quorum.Members), c.samePort()}
	if c.TLS != nil && c.Env.Formats.ServerTLS != nil {
		_, err := newTLSPort(c.TLS, c.Env.Formats, slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	if c.Quorum.TLS != nil && (c.distributed() || c.Quorum.ObserverMasterAddr != "") && c.Env.Formats.PeerTLS != nil {
		_, err := c.Quorum.TLS.load(c.Env.Formats, slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	if c.Admin != nil && c.Admin.TLS != nil && c.Env.Formats.ServerTLS != nil {
		_, err := c.Admin.TLS.load(c.Env.Formats, slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	if c.Metrics != nil && c.Metrics.SecureAddr != "" && c.Metrics.TLS != nil && c.Env.Formats.ServerTLS != nil {
		_, err := c.Metrics.security(listen.At("", c.Metrics.SecureAddr)).load(c.Env.Formats, slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.badHosts()...)...)
}

// badHosts reports hosts with characters that no name and no address has.
func (c *Config) badHosts() (errs []error) {
	all := []listen.Port{listen.At("clientPortAddress", c.ClientAddr), listen.At("secureClientPortAddress", c.SecureAddr)}
	if c.Admin != nil {
		all = append(all, listen.At("admin.serverAddress", c.Admin.Addr))
	}
	if c.Metrics != nil {
		all = append(all, c.Metrics.hosts()...)
	}
	for _, m := range c.Quorum.Members {
		for _, addr := range append([]string{m.QuorumAddr}, m.Alternates...) {
			all = append(all, listen.At(fmt.Sprintf("server.%d", m.ID), addr))
		}
	}
	for _, p := range all {
		host, _, err := net.SplitHostPort(p.Addr)
		if err == nil && !raftfsm.ValidHost(host) {
			errs = append(errs, fmt.Errorf("%s: %q is not a host: want a name or an address in ASCII, without quotes", p.Setting, host))
		}
	}
	return errs
}

// ports returns the addresses that the server must listen on for clients and operators.
func (c *Config) ports() []listen.Port {
	all := []listen.Port{listen.At("clientPort", c.ClientAddr), listen.At("secureClientPort", c.SecureAddr)}
	if c.Admin != nil && !c.Admin.Optional {
		all = append(all, listen.At("admin.serverPort", c.Admin.Addr))
	}
	all = append(all, listen.At(observersSetting, c.Quorum.ObserverMasterAddr))
	if c.Metrics != nil {
		all = append(all, c.Metrics.ports()...)
	}
	return slices.DeleteFunc(all, func(p listen.Port) bool { return p.Addr == "" })
}

// samePort reports settings that use the same port of this host twice.
func (c *Config) samePort() error {
	all := c.ports()
	for _, m := range c.Quorum.Members {
		if m.ID == c.Quorum.ID && c.distributed() {
			all = append(all, listen.At(fmt.Sprintf("server.%d", m.ID), c.quorumListens(m.QuorumAddr)))
		}
	}
	var errs []error
	for i, p := range all {
		for _, q := range all[:i] {
			if listen.Overlap(p.Addr, q.Addr) {
				errs = append(errs, fmt.Errorf("%s and %s both listen on %s: give one of them another port", q.Setting, p.Setting, p.Addr))
			}
		}
	}
	return errors.Join(errs...)
}

// quorumListens returns where a server with this quorum address listens for its peers.
func (c *Config) quorumListens(addr string) string {
	_, number, err := net.SplitHostPort(addr)
	switch {
	case err != nil:
		return addr
	case c.Quorum.ListenAll:
		return ":" + number
	case c.Quorum.ListenHost != "":
		return net.JoinHostPort(c.Quorum.ListenHost, number)
	}
	return addr
}

// CheckAddresses returns an error for each setting with a host that this machine can't
// listen on, because the name doesn't resolve or the address belongs to another machine.
// Each error begins with the setting. [LoadConfig] doesn't return these errors: a file may
// be checked on another machine, and a name may resolve later. To find out, CheckAddresses
// listens on a free port of each host for a moment.
func (c Config) CheckAddresses(ctx context.Context) []error {
	return listen.CheckHosts(ctx, c.hosts())
}

// hosts returns the addresses that the server listens on, with the settings that name
// their hosts.
func (c *Config) hosts() []listen.Port {
	client := "clientPortAddress"
	var all []listen.Port
	for _, m := range c.Quorum.Members {
		if m.ID != c.Quorum.ID || !c.distributed() {
			continue
		}
		own := fmt.Sprintf("server.%d", m.ID)
		if m.ClientAddr != "" && m.ClientAddr == c.ClientAddr {
			client = own + " (address for clients)"
		}
		if c.Quorum.ListenHost != "" || c.Quorum.ListenAll {
			all = append(all, listen.At("quorumListenAddress", c.quorumListens(m.QuorumAddr)))
			continue
		}
		for _, addr := range append([]string{m.QuorumAddr}, m.Alternates...) {
			all = append(all, listen.At(own, addr))
		}
	}
	all = append(all, listen.At(client, c.ClientAddr), listen.At("secureClientPortAddress", c.SecureAddr))
	if c.Admin != nil {
		all = append(all, listen.At("admin.serverAddress", c.Admin.Addr))
	}
	if c.Metrics != nil {
		all = append(all, c.Metrics.hosts()...)
	}
	return all
}

// ListenError reports that the server can't listen on an address.
type ListenError struct {
	// Setting is the key of zoo.cfg that names the port.
	Setting string
	// Addr is the address, as host:port.
	Addr string
	// Err is the system's error.
	Err error
}

// Error names the setting, the address and the cause.
func (e *ListenError) Error() string {
	switch {
	case listen.InUse(e.Err):
		return fmt.Sprintf("%s: the port of %s is in use by another process: %v", e.Setting, e.Addr, e.Err)
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("%s: no permission to listen on %s: %v; on Linux ports below 1024 need root or CAP_NET_BIND_SERVICE", e.Setting, e.Addr, e.Err)
	}
	return fmt.Sprintf("%s: cannot listen on %s: %v", e.Setting, e.Addr, e.Err)
}

// Unwrap returns the system's error.
func (e *ListenError) Unwrap() error { return e.Err }

// checkPorts opens and closes every port that the server will listen on for clients and
// operators. We thus find an unavailable port before the server creates a data directory,
// and before it reports that it has started. The ports stay closed while the server reads
// its state: a client then tries another server instead of waiting.
func checkPorts(ctx context.Context, c *Config) error {
	for _, p := range c.ports() {
		l, err := c.bindRetry().AwaitName(ctx, p, listen.TCP)
		if err != nil {
			return listenError(p, err)
		}
		if err := l.Close(); err != nil {
			return fmt.Errorf("%s: %w", p.Setting, err)
		}
	}
	return nil
}

// listenError returns the error of listening at p.
func listenError(p listen.Port, err error) error {
	return &ListenError{Setting: p.Setting, Addr: p.Addr, Err: err}
}

// bindRetry is how often the server tries to listen at its start.
func (c *Config) bindRetry() listen.Retry {
	return listen.Retry{Tries: c.Quorum.BindTries, Pause: listen.Pause, Log: c.Logger}
}
