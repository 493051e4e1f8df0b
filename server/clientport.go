package server

import (
	"context"
	"errors"
	"net"
	"slices"
	"syscall"
	"time"
)

// The client port in a server's own line of the membership. When a reconfig names
// another one, the server listens there at once, as ZooKeeper's does: connections
// that are open stay, and new ones come in at the new address only. A port that
// cannot be opened leaves the old one open; the server says so and tries again.

// portRetry is the pause before another try to open a port that a reconfig has named.
const portRetry = 5 * time.Second

// keepClientPort follows the membership until the server is closed.
func (s *Server) keepClientPort() {
	if s.cfg.ClientAddr == "" || !s.cfg.distributed() {
		return
	}
	s.spawn(func() {
		at, failed := s.cfg.ClientAddr, ""
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
			if !line.ByReconfig() || want == "" || want == at {
				failed = ""
				continue
			}
			switch err := s.moveClientPort(at, want); {
			case err == nil:
				s.log.Info("clients connect at another address", "from", at, "to", want)
				at, failed = want, ""
			case failed != want && !errors.Is(err, ErrClosed):
				s.log.Error("cannot listen for clients at the address that a reconfig has set: it goes on at the old one and tries again; "+
					"free the port, or set another one with reconfig", "addr", want, "listening", at, "error", err)
				failed = want
			}
		}
	})
}

// moveClientPort opens the plaintext listener at another address and closes the one
// before. If that fails, the one before is open.
func (s *Server) moveClientPort(from, to string) error {
	s.mu.Lock()
	old := s.listeners[0]
	s.mu.Unlock()
	next, err := s.openListener(to)
	_, oldPort, _ := net.SplitHostPort(from)
	if _, port, _ := net.SplitHostPort(to); errors.Is(err, syscall.EADDRINUSE) && port == oldPort {
		// The same port at addresses that overlap: one has to go before the other comes.
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

// swapListener serves next in the place of old, which it closes.
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

// clientTLS is what the plaintext port takes besides plaintext; nil: nothing.
func (s *Server) clientTLS() *tlsPort {
	if s.cfg.PortUnification {
		return s.tlsPort.asOptional()
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
