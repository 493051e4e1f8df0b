package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/raftfsm"
)

// verify reports everything that would make Start refuse a configuration and that can
// be checked without opening the data or a port. It also reads the files that the
// configuration names. Every command that reads a configuration file calls it, through
// LoadConfig, so all commands accept the same files.
func (c Config) verify() error {
	c = c.withDefaults()
	errs := []error{c.check(), raftfsm.SameAddress(c.Quorum.Members), c.samePort()}
	if c.TLS != nil {
		_, err := newTLSPort(c.TLS, slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	if c.Quorum.TLS != nil && c.distributed() {
		_, err := c.Quorum.TLS.load(slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	if c.Admin != nil && c.Admin.TLS != nil {
		_, err := c.Admin.TLS.load(slog.New(slog.DiscardHandler))
		errs = append(errs, err)
	}
	return errors.Join(append(errs, c.badHosts()...)...)
}

// badHosts reports hosts with characters that no name and no address has.
func (c *Config) badHosts() (errs []error) {
	all := []port{{"clientPortAddress", c.ClientAddr}, {"secureClientPortAddress", c.SecureAddr}}
	if c.Admin != nil {
		all = append(all, port{"admin.serverAddress", c.Admin.Addr})
	}
	if c.Metrics != nil {
		all = append(all, port{"metricsProvider.httpHost", c.Metrics.Addr})
	}
	for _, m := range c.Quorum.Members {
		for _, addr := range append([]string{m.QuorumAddr}, m.Alternates...) {
			all = append(all, port{fmt.Sprintf("server.%d", m.ID), addr})
		}
	}
	for _, p := range all {
		host, _, err := net.SplitHostPort(p.addr)
		if err == nil && !raftfsm.ValidHost(host) {
			errs = append(errs, fmt.Errorf("%s: %q is no host: write a name or an address in ASCII, without quotes", p.setting, host))
		}
	}
	return errs
}

// port is an address to listen on and the setting that names it.
type port struct{ setting, addr string }

// ports returns the addresses that the server must listen on for clients and operators.
func (c *Config) ports() []port {
	all := []port{{"clientPort", c.ClientAddr}, {"secureClientPort", c.SecureAddr}}
	if c.Admin != nil && !c.Admin.Optional {
		all = append(all, port{"admin.serverPort", c.Admin.Addr})
	}
	if c.Metrics != nil {
		all = append(all, port{"metricsProvider.httpPort", c.Metrics.Addr})
	}
	return slices.DeleteFunc(all, func(p port) bool { return p.addr == "" })
}

// samePort reports settings that use the same port of this host twice.
func (c *Config) samePort() error {
	all := c.ports()
	for _, m := range c.Quorum.Members {
		if m.ID == c.Quorum.ID && c.distributed() {
			all = append(all, port{fmt.Sprintf("server.%d", m.ID), c.quorumListens(m.QuorumAddr)})
		}
	}
	var errs []error
	for i, p := range all {
		for _, q := range all[:i] {
			if overlap(p.addr, q.addr) {
				errs = append(errs, fmt.Errorf("%s and %s both listen on %s: give one of them another port", q.setting, p.setting, p.addr))
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

// overlap reports whether one host can't listen on both addresses. It resolves no
// names: two different names count as two hosts, even if they are the same.
func overlap(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	return everyHost(hostA) || everyHost(hostB) || strings.EqualFold(hostA, hostB)
}

func everyHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "" || ip != nil && ip.IsUnspecified()
}

// lookupTimeout bounds the time in which CheckAddresses resolves names.
const lookupTimeout = 2 * time.Second

// wsaEAddrNotAvail is Windows' error number for EADDRNOTAVAIL.
const wsaEAddrNotAvail = syscall.Errno(10049)

// CheckAddresses returns an error for each setting whose host this machine can't listen
// on, because the name doesn't resolve or the address is one of another machine. Each
// error begins with the setting. These are separate from the errors of [LoadConfig]: a
// file may be checked on another machine, and a name may resolve later. To find out,
// CheckAddresses listens on a free port of each host for a moment.
func CheckAddresses(ctx context.Context, c Config) []error {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	all := c.hosts()
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	for i, p := range all {
		wg.Go(func() { errs[i] = p.checkHost(ctx) })
	}
	wg.Wait()
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// hosts returns the addresses that the server listens on, with the settings that name
// their hosts.
func (c *Config) hosts() []port {
	client := "clientPortAddress"
	var all []port
	for _, m := range c.Quorum.Members {
		if m.ID != c.Quorum.ID || !c.distributed() {
			continue
		}
		own := fmt.Sprintf("server.%d", m.ID)
		if m.ClientAddr != "" && m.ClientAddr == c.ClientAddr {
			client = own + " (address for clients)"
		}
		if c.Quorum.ListenHost != "" || c.Quorum.ListenAll {
			all = append(all, port{"quorumListenAddress", c.quorumListens(m.QuorumAddr)})
			continue
		}
		for _, addr := range append([]string{m.QuorumAddr}, m.Alternates...) {
			all = append(all, port{own, addr})
		}
	}
	all = append(all, port{client, c.ClientAddr}, port{"secureClientPortAddress", c.SecureAddr})
	if c.Admin != nil {
		all = append(all, port{"admin.serverAddress", c.Admin.Addr})
	}
	if c.Metrics != nil {
		all = append(all, port{"metricsProvider.httpHost", c.Metrics.Addr})
	}
	return all
}

// checkHost reports that this machine can't listen on the host of the address.
func (p port) checkHost(ctx context.Context) error {
	host, _, err := net.SplitHostPort(p.addr)
	if err != nil || everyHost(host) {
		return nil
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
	if err == nil {
		return l.Close()
	}
	if problem := HostProblem(err); problem != "" {
		return fmt.Errorf("%s: %s", p.setting, problem)
	}
	return fmt.Errorf("%s: cannot listen on %s: %w", p.setting, host, err)
}

// HostProblem describes an error of listening that another port doesn't fix: the name
// of the host doesn't resolve, or its address is one of another machine. It returns ""
// for other errors.
func HostProblem(err error) string {
	var listen *net.OpError
	if !errors.As(err, &listen) || listen.Op != "listen" {
		return ""
	}
	var lookup *net.DNSError
	if errors.As(listen, &lookup) {
		return fmt.Sprintf("the name %s does not resolve: %s", lookup.Name, lookup.Err)
	}
	var errno syscall.Errno
	if errors.As(listen, &errno) && (errno == syscall.EADDRNOTAVAIL || errno == wsaEAddrNotAvail) {
		host := fmt.Sprint(listen.Addr)
		if addr, ok := listen.Addr.(*net.TCPAddr); ok {
			host = addr.IP.String()
		}
		return host + " is not an address of this machine"
	}
	return ""
}
