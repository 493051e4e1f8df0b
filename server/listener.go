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

// clientTLS returns the TLS that the plaintext port also accepts, or nil.
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

// begin starts the reader of a new connection. It immediately closes a connection above the
// limits.
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
			c.raw, c.reader.recvs.orWait, c.reader.recvs.now = raw, c.reader.recvOrWait, c.reader.recv
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

// orLocal returns the address for ACLs; an in-process client has no address.
func orLocal(host string) string {
	if host == "" {
		return "127.0.0.1"
	}
	return host
}

// kernelOf returns the socket under a connection, or nil.
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

// The client port in a server's own line of the membership. When a reconfig changes the
// port, the server immediately listens on the new one, like ZooKeeper: open connections
// stay, and new ones arrive only at the new address. If the port can't be opened, the old
// one stays open; the server logs an error and tries again.

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
	others := []listen.Port{listen.At("secureClientPort", s.cfg.SecureAddr), listen.At("admin.serverPort", s.AdminAddr())}
	for i, own := range s.cfg.Metrics.ports() {
		others = append(others, listen.At(own.Setting, s.metrics[i].Addr()))
	}
	for _, own := range others {
		if listen.Overlap(own.Addr, want) {
			s.log.Warn("a reconfig has set a client address at which this server has another port: keeping the old one and trying again; "+
				"change "+own.Setting+" in the configuration file before the next start, or set another client address with reconfig",
				"addr", want, "listening", at, "error", err)
			return
		}
	}
	s.log.Error("cannot listen for clients at the address that a reconfig has set: keeping the old one and trying again; "+
		"free the port, or set another one with reconfig", "addr", want, "listening", at, "error", err)
}
