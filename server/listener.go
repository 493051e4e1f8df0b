package server

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/zkgo/zkgo/internal/auth/tlsport"
	"github.com/zkgo/zkgo/internal/listen"
	"github.com/zkgo/zkgo/internal/poller"
	"github.com/zkgo/zkgo/proto"
)

// clientPorts are the listeners for clients.
type clientPorts struct {
	s     *Server
	tls   *tlsport.Port // nil without TLS
	moved chan struct{} // signals follow that the membership changed

	mu        sync.Mutex
	listeners []net.Listener
	closed    bool
}

// openAll opens the client ports. ctx ends the wait for a host name.
func (p *clientPorts) openAll(ctx context.Context) error {
	c := &p.s.cfg
	open := func(at listen.Port, security *tlsport.Port) error {
		_, err := c.bindRetry().AwaitName(ctx, at, func(addr string) (net.Listener, error) { return nil, p.listen(at.Setting, addr, security) })
		return err
	}
	if c.ClientAddr != "" {
		if err := open(listen.At("clientPort", c.ClientAddr), p.clientTLS()); err != nil {
			return err
		}
	}
	if c.SecureAddr != "" {
		return open(listen.At("secureClientPort", c.SecureAddr), p.tls)
	}
	return nil
}

// clientTLS returns the TLS that the plaintext port also accepts, nil if none.
func (p *clientPorts) clientTLS() *tlsport.Port {
	if p.s.cfg.PortUnification {
		return p.tls.AsOptional()
	}
	return nil
}

// openListener opens a port for clients.
func (p *clientPorts) openListener(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: -1}
	if p.s.cfg.Limits.TCPKeepAlive {
		lc.KeepAlive = 0 // the system's default
	}
	return lc.Listen(context.Background(), "tcp", addr)
}

// addrs returns the addresses of all listeners.
func (p *clientPorts) addrs() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var addrs []string
	for _, l := range p.listeners {
		addrs = append(addrs, l.Addr().String())
	}
	return addrs
}

// close closes all listeners.
func (p *clientPorts) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, l := range p.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// listen opens a listener for clients. port is nil for plaintext; setting is the key
// that names the address.
func (p *clientPorts) listen(setting, addr string, port *tlsport.Port) error {
	l, err := p.openListener(addr)
	if err != nil {
		return &ListenError{Setting: setting, Addr: addr, Err: err}
	}
	p.mu.Lock()
	p.listeners = append(p.listeners, l)
	p.mu.Unlock()
	p.s.spawn(func() { p.accept(l, port) })
	return nil
}

// accept accepts connections until the listener is closed.
func (p *clientPorts) accept(l net.Listener, port *tlsport.Port) {
	s := p.s
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
	if ic := s.cfg.Env.Interceptor; ic != nil {
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
	c := newConn(s, nc)
	c.host, c.kernel, c.secure = host, kernel, port.Secure()
	c.reader.calls.Store(1)
	if sc, ok := nc.(syscall.Conn); ok && poller.Supported {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw, c.reader.recvWait, c.reader.recvNow = raw, c.reader.recvOrWait, c.reader.recv
		}
	}
	c.try, _ = nc.(tryWriter)
	c.session.ids.Replace([]proto.ID{{Scheme: "ip", ID: orLocal(host)}})
	if !s.clients.admit(c) {
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

// kernelOf returns the socket under a connection, nil if there is none.
func kernelOf(nc any) syscall.RawConn {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}
