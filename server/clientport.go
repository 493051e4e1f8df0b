package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/internal/auth/tlsport"
)

// The client port in a server's own line of the membership. When a reconfig changes the
// port, the server listens on the new one at once, as ZooKeeper does: open connections
// stay, and new ones arrive only at the new address. If the port can't be opened, the
// old one stays open; the server logs an error and tries again.

// portRetry is the delay before another attempt to open a port that a reconfig has set.
const portRetry = 5 * time.Second

// keepClientPort follows the membership until the server is closed.
func (s *Server) keepClientPort() {
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
			case <-s.lines:
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
			switch err := s.moveClientPort(at, want); {
			case err == nil:
				s.log.Info("clients connect at another address", "from", at, "to", want)
				at, failed = want, ""
			case failed != want && !errors.Is(err, ErrClosed):
				s.staysAt(at, want, err)
				failed = want
			}
		}
	})
}

// staysAt logs that the server can't listen for clients at the address that a reconfig
// has set. The leader doesn't know on which other ports the server listens, so it can't
// refuse such a reconfig.
func (s *Server) staysAt(at, want string, err error) {
	for _, own := range []port{{"secureClientPort", s.cfg.SecureAddr}, {"admin.serverPort", s.AdminAddr()}, {"metricsProvider.httpPort", s.MetricsAddr()}} {
		if overlap(own.addr, want) {
			s.log.Warn("a reconfig has set a client address at which this server has another port: it goes on at the old one and tries again; "+
				"change "+own.setting+" in the configuration file before the next start, or set another client address with reconfig",
				"addr", want, "listening", at, "error", err)
			return
		}
	}
	s.log.Error("cannot listen for clients at the address that a reconfig has set: it goes on at the old one and tries again; "+
		"free the port, or set another one with reconfig", "addr", want, "listening", at, "error", err)
}

// moveClientPort opens the plaintext listener at another address and closes the old
// one. If that fails, the old one stays open.
func (s *Server) moveClientPort(from, to string) error {
	s.mu.Lock()
	old := s.listeners[0]
	s.mu.Unlock()
	next, err := s.openListener(to)
	_, oldPort, _ := net.SplitHostPort(from)
	if _, port, _ := net.SplitHostPort(to); errors.Is(err, syscall.EADDRINUSE) && port == oldPort {
		// The same port at overlapping addresses: the old listener must close first.
		_ = old.Close()
		if next, err = s.openListener(to); err != nil {
			again, lost := s.openListener(old.Addr().String())
			if lost != nil {
				return errors.Join(err, lost)
			}
			return errors.Join(err, s.swapListener(old, again))
		}
	}
	if err != nil {
		return err
	}
	return s.swapListener(old, next)
}

// swapListener replaces old with next and closes old.
func (s *Server) swapListener(old, next net.Listener) error {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		_ = next.Close()
		return ErrClosed
	}
	s.listeners = slices.Clone(s.listeners)
	s.listeners[0] = next
	s.mu.Unlock()
	s.spawn(func() { s.accept(next, s.clientTLS()) })
	_ = old.Close()
	return nil
}

// clientTLS returns the TLS that the plaintext port also accepts, nil if none.
func (s *Server) clientTLS() *tlsport.Port {
	if s.cfg.PortUnification {
		return s.tlsPort.AsOptional()
	}
	return nil
}

// openListener opens a port for clients.
func (s *Server) openListener(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1}
	if s.cfg.TCPKeepAlive {
		lc.KeepAlive = 0 // the system's default
	}
	return lc.Listen(context.Background(), "tcp", addr)
}
