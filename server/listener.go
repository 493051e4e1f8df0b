package server

import (
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/proto"
)

// listen opens a listener for clients. port is nil for plaintext; setting is the key
// that names the address.
func (s *Server) listen(setting, addr string, port *tlsport.Port) error {
	l, err := s.openListener(addr)
	if err != nil {
		return &ListenError{Setting: setting, Addr: addr, Err: err}
	}
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	s.spawn(func() { s.accept(l, port) })
	return nil
}

// accept accepts connections until the listener is closed.
func (s *Server) accept(l net.Listener, port *tlsport.Port) {
	for {
		nc, err := l.Accept()
		if err == nil {
			s.begin(nc, port)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		s.complaints.Warn(s.clock(), "cannot accept a client", "error", err)
		select {
		case <-s.done:
			return
		case <-time.After(tlsport.AcceptPause):
		}
	}
}

// begin starts the reader of a new connection. It closes a connection above the limits
// at once.
func (s *Server) begin(nc net.Conn, port *tlsport.Port) {
	if ic := s.cfg.Interceptor; ic != nil {
		accepted := ic.Accept(nc)
		if accepted == nil {
			_ = nc.Close()
			return
		}
		nc = accepted
	}
	kernel := kernelOf(nc)
	host, _, _ := net.SplitHostPort(nc.RemoteAddr().String())
	if port != nil {
		nc = port.Wrap(nc)
	}
	c := &conn{s: s, nc: nc, host: host, linear: s.cfg.LinearizableReads, secure: port.Secure(), born: s.clock(), id: noID, kernel: kernel}
	c.calls.Store(1)
	c.last.Store(c.born)
	if sc, ok := nc.(syscall.Conn); ok && rawSockets {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw, c.wake, c.listen = raw, c.readReady, c.readNow
		}
	}
	c.try, _ = nc.(tryWriter)
	c.setIdentities([]proto.ID{{Scheme: "ip", ID: orLocal(host)}})
	if !s.admit(c) {
		_ = nc.Close()
		return
	}
	go c.serve()
}

// orLocal returns the address that ACLs see; an in-process client has none of its own.
func orLocal(host string) string {
	if host == "" {
		return "127.0.0.1"
	}
	return host
}
