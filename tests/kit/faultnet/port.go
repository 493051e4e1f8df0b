package faultnet

import (
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
)

// Identify determines which end has dialled from the first bytes of the
// connection. It returns these bytes, so that they can be sent to the dialled
// end.
type Identify func(r io.Reader) (from string, first []byte, err error)

// Port is the address at which an end is dialled, in front of the address at
// which that end really listens. It is down until Up.
type Port struct {
	net      *Net
	addr     string
	to       string
	target   string
	identify Identify

	mu sync.Mutex
	ln net.Listener
}

// Port creates a port at addr for an end that listens at target.
func (n *Net) Port(to, addr, target string, identify Identify) *Port {
	p := &Port{net: n, addr: addr, to: to, target: target, identify: identify}
	n.mu.Lock()
	n.ports = append(n.ports, p)
	n.mu.Unlock()
	return p
}

// PortFrom creates a port on any free port of host that only one end dials, and
// brings it up.
func (n *Net) PortFrom(from, to, host, target string) (*Port, error) {
	p := n.Port(to, net.JoinHostPort(host, "0"), target, func(io.Reader) (string, []byte, error) { return from, nil, nil })
	return p, p.Up()
}

// Addr returns the address to dial.
func (p *Port) Addr() string { return p.addr }

// Up makes the port accept connections.
func (p *Port) Up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln != nil {
		return nil
	}
	ln, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.ln, p.addr = ln, ln.Addr().String()
	p.net.wg.Go(func() { p.accept(ln) })
	return nil
}

// Down makes the port refuse connections, like the port of a process that is
// gone. Open connections stay.
func (p *Port) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln != nil {
		_ = p.ln.Close()
		p.ln = nil
	}
}

// mirror closes the port if its process is gone. This way, when an end learns that a connection has
// ended, the port already refuses new ones.
func (p *Port) mirror() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln == nil {
		return
	}
	conn, err := net.DialTimeout("tcp", p.target, dialTimeout)
	if err == nil {
		_ = conn.Close()
		return
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		_ = p.ln.Close()
		p.ln = nil
	}
}

func (p *Port) accept(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		tcp, ok := conn.(*net.TCPConn)
		if !ok {
			_ = conn.Close()
			continue
		}
		p.net.wg.Go(func() { p.begin(tcp) })
	}
}

func (p *Port) begin(conn *net.TCPConn) {
	quit := make(chan struct{})
	go func() {
		select {
		case <-p.net.ctx.Done():
			_ = conn.Close()
		case <-quit:
		}
	}()
	from, first, err := p.identify(conn)
	close(quit)
	if err != nil {
		_ = conn.Close()
		return
	}
	p.net.serve(conn, p, from, first)
}
