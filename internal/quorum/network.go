package quorum

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"time"
)

// Network creates the listeners and the connections of a server. Addresses are host:port;
// we resolve a host name before every attempt, so that we find a peer that returns with a
// new address.
type Network interface {
	Listen(addr string) (net.Listener, error)
	Dial(ctx context.Context, addr string) (net.Conn, error)
}

// TCP is the kernel's network, for one server. It keeps the addresses of host names.
type TCP struct {
	// Resolve returns the addresses of a host. Nil: the machine's resolver.
	Resolve Resolver
	// Connect connects to an address without a host name. Nil: the kernel.
	Connect func(ctx context.Context, addr string) (net.Conn, error)

	names names
}

// Resolver returns the addresses of a host.
type Resolver func(ctx context.Context, host string) ([]netip.Addr, error)

const (
	// keepAlive makes the kernel detect that a peer's host has vanished silently.
	keepAlive = 5 * time.Second
	// addressDelay is the head start of each address of a host name over the next.
	// Package net uses the same.
	addressDelay = 300 * time.Millisecond
)

// Listen listens on addr.
func (*TCP) Listen(addr string) (net.Listener, error) {
	lc := net.ListenConfig{KeepAlive: keepAlive}
	return lc.Listen(context.Background(), "tcp", addr)
}

// Dial connects to addr. While the lookup of its host name fails or is slow, Dial uses
// the last known addresses.
func (t *TCP) Dial(ctx context.Context, addr string) (net.Conn, error) {
	host, port, named := splitName(addr)
	if !named {
		return t.dialer()(ctx, addr)
	}
	hosts, slow, lookupErr := t.names.find(ctx, host, t.resolver())
	if len(hosts) == 0 {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: lookupErr}
	}
	current, cancel := slow.until(ctx, hosts)
	conn, err := t.dialHosts(current, hosts, port)
	cancel()
	if err != nil && slow.moved(hosts) {
		conn, err = t.dialHosts(ctx, slow.addrs, port)
	}
	if err == nil {
		return conn, nil
	}
	if dns := (*net.DNSError)(nil); errors.As(lookupErr, &dns) && dns.IsNotFound {
		// The name has no address any more. If the old address refuses the connection, it
		// may belong to another machine by now, so that proves nothing about the server.
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: lookupErr}
	}
	if lookupErr != nil {
		return nil, errors.Join(err, lookupErr)
	}
	return nil, err
}

// dialHosts connects to the first of the addresses of a host that accepts.
func (t *TCP) dialHosts(ctx context.Context, hosts []string, port string) (net.Conn, error) {
	addrs := make([]string, len(hosts))
	for i, h := range hosts {
		addrs[i] = net.JoinHostPort(h, port)
	}
	conn, errs := DialFirst(ctx, addrs, addressDelay, t.dialer())
	if conn == nil {
		return nil, errs[0]
	}
	return conn, nil
}

// LookUp looks up the host name in addr so that a later Dial knows its addresses. It
// doesn't wait for the result.
func (t *TCP) LookUp(addr string) {
	if host, _, named := splitName(addr); named {
		t.names.begin(host, t.resolver())
	}
}

// StopLookUps ends the lookups under way.
func (t *TCP) StopLookUps() { t.names.stop() }

// resolving is a network that looks up host names.
type resolving interface {
	LookUp(addr string)
	StopLookUps()
}

// resolvingOf returns the network below n that looks up host names, or nil.
func resolvingOf(n Network) resolving {
	for {
		switch x := n.(type) {
		case resolving:
			return x
		case interface{ Unwrap() Network }:
			n = x.Unwrap()
		default:
			return nil
		}
	}
}

// LookUp makes a network look up the host name in addr, if it has such names. It reports
// whether it has.
func LookUp(n Network, addr string) bool {
	r := resolvingOf(n)
	if r != nil {
		r.LookUp(addr)
	}
	return r != nil
}

func (t *TCP) resolver() Resolver {
	if t.Resolve != nil {
		return t.Resolve
	}
	return func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
}

func (t *TCP) dialer() func(ctx context.Context, addr string) (net.Conn, error) {
	if t.Connect != nil {
		return t.Connect
	}
	d := net.Dialer{KeepAlive: keepAlive}
	return func(ctx context.Context, addr string) (net.Conn, error) { return d.DialContext(ctx, "tcp", addr) }
}

// splitName splits addr if its host is a name, and not an address or empty.
func splitName(addr string) (host, port string, named bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host == "" {
		return "", "", false
	}
	_, err = netip.ParseAddr(host)
	return host, port, err != nil
}

// DialFirst connects to the first of several addresses that accepts. Each has a head
// start over the next, which starts earlier if the previous one fails. If all fail,
// it returns the errors of all addresses that it tried, at least of the first.
func DialFirst(ctx context.Context, addrs []string, headStart time.Duration, dial func(ctx context.Context, addr string) (net.Conn, error)) (net.Conn, []error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		i    int
		conn net.Conn
		err  error
	}
	outcomes := make(chan outcome, len(addrs))
	errs := make([]error, len(addrs))
	next := time.NewTimer(headStart)
	defer next.Stop()
	started, running := 0, 0
	start := func() {
		i := started
		started, running = started+1, running+1
		next.Reset(headStart)
		go func() {
			conn, err := dial(ctx, addrs[i])
			outcomes <- outcome{i, conn, err}
		}()
	}
	var first net.Conn
	for start(); running > 0; {
		select {
		case <-next.C:
		case o := <-outcomes:
			running--
			switch {
			case o.err != nil:
				errs[o.i] = o.err
			case first == nil:
				first = o.conn
				cancel()
			default: // close a connection that comes too late
				_ = o.conn.Close()
			}
		}
		if first == nil && started < len(addrs) && ctx.Err() == nil {
			start()
		}
	}
	return first, errs
}

// Addresses returns first and the other addresses, without duplicates.
func Addresses(first string, others []string) []string {
	all := []string{first}
	for _, addr := range others {
		if !slices.Contains(all, addr) {
			all = append(all, addr)
		}
	}
	return all
}

// DialAny opens a stream to a server at its first address that answers. Each address gets
// a share of the remaining time, because one may accept the connection and stay silent.
// The error describes the first address.
func DialAny(ctx context.Context, hub *Hub, kind Kind, addrs []string, to string) (net.Conn, error) {
	var first error
	for i, addr := range addrs {
		part, cancel := Share(ctx, len(addrs)-i)
		conn, _, err := hub.Dial(part, kind, addr, to)
		if cancel(); err == nil {
			return conn, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// Share returns a context for one of several remaining attempts: it gets an equal part of
// the remaining time.
func Share(ctx context.Context, attempts int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok || attempts < 2 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(attempts))
}

// BlamePath tells the network that a stream made no progress, or that its handshake
// failed, so that a server with several addresses is dialled at another address.
func BlamePath(stream net.Conn) {
	for {
		switch c := stream.(type) {
		case interface{ BlamePath() }:
			c.BlamePath()
			return
		case *tracked:
			stream = c.Conn
		case *unreadConn:
			stream = c.Conn
		case interface{ NetConn() net.Conn }: // TLS
			stream = c.NetConn()
		default:
			return
		}
	}
}
