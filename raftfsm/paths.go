package raftfsm

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/internal/quorum"
)

// Several addresses of one server, as with ZooKeeper's multiAddress: the server listens
// on all of them, and a peer that dials one uses the first address that answers. Raft
// knows a server by the first address of its line. ZooKeeper pings addresses beforehand
// to see which ones are reachable. Here the dial itself tells, so
// multiAddress.reachabilityCheck has no effect.

// pathDelay is the head start of each address over the next.
const pathDelay = 100 * time.Millisecond

// paths is a network in which a server may have several addresses.
type paths struct {
	quorum.Network
	more       []string // further addresses to listen on
	alternates func(addr string) []string
}

func (e *ensemble) network() quorum.Network {
	p := paths{Network: e.n.cfg.Network, alternates: e.alternates}
	if !e.n.cfg.ListenAll && e.n.cfg.ListenHost == "" {
		p.more = e.self.Alternates
	}
	return p
}

// alternates returns the other addresses of the server whose first address is addr.
func (e *ensemble) alternates(addr string) []string {
	lists := [][]Member{e.n.cfg.Members}
	if m := e.replicated(); m != nil {
		lists = append(lists, m.members)
	}
	for _, list := range lists {
		for _, m := range list {
			if m.QuorumAddr == addr && len(m.Alternates) > 0 {
				return m.Alternates
			}
		}
	}
	return nil
}

// Dial implements quorum.Network.
func (p paths) Dial(ctx context.Context, addr string) (net.Conn, error) {
	others := p.alternates(addr)
	if len(others) == 0 {
		return p.Network.Dial(ctx, addr)
	}
	all := append([]string{addr}, others...)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		conn net.Conn
		err  error
	}
	outcomes := make(chan outcome, len(all))
	for i, a := range all {
		go func() {
			pauseFor(ctx, time.Duration(i)*pathDelay)
			conn, err := p.Network.Dial(ctx, a)
			outcomes <- outcome{conn, err}
		}()
	}
	var first net.Conn
	var errs []error
	for range all { // close the connections that come too late
		switch o := <-outcomes; {
		case o.err != nil:
			errs = append(errs, o.err)
		case first == nil:
			first = o.conn
			cancel()
		default:
			_ = o.conn.Close()
		}
	}
	if first == nil {
		return nil, errors.Join(errs...)
	}
	return first, nil
}

// Unwrap returns the underlying network.
func (p paths) Unwrap() quorum.Network { return p.Network }

// Listen implements quorum.Network.
func (p paths) Listen(addr string) (net.Listener, error) {
	first, err := p.Network.Listen(addr)
	if err != nil || len(p.more) == 0 {
		return first, err
	}
	l := &listeners{Listener: first, conns: make(chan net.Conn), failed: make(chan error, 1), done: make(chan struct{})}
	l.all = append(l.all, first)
	for _, a := range p.more {
		next, err := p.Network.Listen(a)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		l.all = append(l.all, next)
	}
	for _, x := range slices.Clone(l.all) {
		l.wg.Go(func() { l.serve(x) })
	}
	return l, nil
}

// listeners combines several listeners into one.
type listeners struct {
	net.Listener // the first one, whose address Addr returns
	all          []net.Listener
	conns        chan net.Conn
	failed       chan error
	done         chan struct{}
	once         sync.Once
	wg           sync.WaitGroup
}

func (l *listeners) serve(x net.Listener) {
	for {
		conn, err := x.Accept()
		if err != nil {
			select {
			case l.failed <- err: // Accept returns it, and is called again unless closed
			case <-l.done:
			}
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		select {
		case l.conns <- conn:
		case <-l.done:
			_ = conn.Close()
			return
		}
	}
}

// Accept implements net.Listener.
func (l *listeners) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, net.ErrClosed
	case conn := <-l.conns:
		return conn, nil
	case err := <-l.failed:
		return nil, err
	}
}

// Close implements net.Listener.
func (l *listeners) Close() error {
	var errs []error
	l.once.Do(func() {
		close(l.done)
		for _, x := range l.all {
			errs = append(errs, x.Close())
		}
		l.wg.Wait()
	})
	return errors.Join(errs...)
}
