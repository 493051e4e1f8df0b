package server

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/internal/listen"
)

// The client port in a server's own line of the membership. When a reconfig changes the
// port, the server listens on the new one at once, as ZooKeeper does: open connections
// stay, and new ones arrive only at the new address. If the port can't be opened, the
// old one stays open; the server logs an error and tries again.

// portRetry is the delay before another attempt to open a port that a reconfig has set.
const portRetry = 5 * time.Second

// follow follows the membership until the server is closed.
func (p *clientPorts) follow() {
	s := p.s
	if s.cfg.ClientAddr == "" || !s.cfg.distributed() {
		return
	}
	s.spawn(func() {
		at, failed, hasPart := s.cfg.ClientAddr, "", s.node.Self().ClientAddr != ""
		for {
			var retry <-chan time.Time
			if failed != "" {
				retry = time.After(portRetry)
			}
			select {
			case <-s.done:
				return
			case <-p.moved:
			case <-retry:
			}
			line := s.node.Self()
			want := line.ClientAddr
			if hasPart != (want != "") && line.ByReconfig() {
				if hasPart = want != ""; !hasPart {
					s.log.Warn("a reconfig has removed the client address from this server's line: it listens as before until it stops; "+
						"add the address to the line with reconfig, or set clientPort in the configuration file, before the next start", "listening", at)
				}
			}
			if !line.ByReconfig() || want == "" || want == at {
				failed = ""
				continue
			}
			switch err := p.move(at, want); {
			case err == nil:
				s.log.Info("clients connect at another address", "from", at, "to", want)
				at, failed = want, ""
			case failed != want && !errors.Is(err, ErrClosed):
				p.staysAt(at, want, err)
				failed = want
			}
		}
	})
}

// staysAt logs that the server can't listen for clients at the address that a reconfig
// has set. The leader doesn't know on which other ports the server listens, so it can't
// refuse such a reconfig.
func (p *clientPorts) staysAt(at, want string, err error) {
	s := p.s
	for _, own := range []listen.Port{listen.At("secureClientPort", s.cfg.SecureAddr), listen.At("admin.serverPort", s.AdminAddr()), listen.At("metricsProvider.httpPort", s.MetricsAddr())} {
		if listen.Overlap(own.Addr, want) {
			s.log.Warn("a reconfig has set a client address at which this server has another port: it goes on at the old one and tries again; "+
				"change "+own.Setting+" in the configuration file before the next start, or set another client address with reconfig",
				"addr", want, "listening", at, "error", err)
			return
		}
	}
	s.log.Error("cannot listen for clients at the address that a reconfig has set: it goes on at the old one and tries again; "+
		"free the port, or set another one with reconfig", "addr", want, "listening", at, "error", err)
}

// move opens the plaintext listener at another address and closes the old
// one. If that fails, the old one stays open.
func (p *clientPorts) move(from, to string) error {
	p.mu.Lock()
	old := p.listeners[0]
	p.mu.Unlock()
	next, err := p.openListener(to)
	_, oldPort, _ := net.SplitHostPort(from)
	if _, port, _ := net.SplitHostPort(to); errors.Is(err, syscall.EADDRINUSE) && port == oldPort {
		// The same port at overlapping addresses: the old listener must close first.
		_ = old.Close()
		if next, err = p.openListener(to); err != nil {
			again, lost := p.openListener(old.Addr().String())
			if lost != nil {
				return errors.Join(err, lost)
			}
			return errors.Join(err, p.swap(old, again))
		}
	}
	if err != nil {
		return err
	}
	return p.swap(old, next)
}

// swap replaces old with next and closes old.
func (p *clientPorts) swap(old, next net.Listener) error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		_ = next.Close()
		return ErrClosed
	}
	p.listeners[0] = next
	p.mu.Unlock()
	p.s.spawn(func() { p.accept(next, p.clientTLS()) })
	_ = old.Close()
	return nil
}
