package raftfsm

import (
	"context"
	"errors"
	"maps"
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
//
// A path may accept connections and still be useless, e.g. if it loses large packets. So
// an address on which a stream stalled or a handshake failed is dialled only after the
// others, for a while.

const (
	// pathDelay is the head start of each address over the next.
	pathDelay = 100 * time.Millisecond
	// firstBlame is how long an address is dialled last after a failure. The time doubles,
	// up to maxBlame, if the address fails again soon after it.
	firstBlame = 30 * time.Second
	maxBlame   = 8 * time.Minute
	// namesEvery is the pause between two lookups of the host names of the other servers.
	namesEvery = 30 * time.Second
)

// paths is a network in which a server may have several addresses.
type paths struct {
	quorum.Network
	alternates func(addr string) []string
	blames     *blames
}

func (p *places) network() quorum.Network {
	return paths{Network: p.env.cfg.Network, alternates: p.alternates, blames: &p.blames}
}

// keepNames looks up the host names of the other servers from time to time, so that this
// server knows their addresses if DNS fails, also those of servers that it hasn't dialled.
func (p *places) keepNames() {
	n := p.network()
	for p.ctx.Err() == nil {
		for _, m := range p.knownMembers() {
			for _, addr := range append([]string{m.QuorumAddr}, p.alternates(m.QuorumAddr)...) {
				if m.ID != p.self.ID && !quorum.LookUp(n, addr) {
					return // the network has no host names
				}
			}
		}
		pauseFor(p.ctx, namesEvery)
	}
}

// alternates returns the other addresses of the server whose first address is addr. The
// membership counts: it may be newer than the configuration file.
func (p *places) alternates(addr string) []string {
	list := p.env.cfg.Members
	if m := p.replicated(); m != nil {
		list = slices.Concat(m.Members, list)
	}
	for _, m := range list {
		if m.QuorumAddr == addr {
			return m.Alternates
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
	good, blamed := p.blames.sort(append([]string{addr}, others...), time.Now())
	if len(good) == 0 || len(blamed) == 0 {
		return p.dialFirst(ctx, append(good, blamed...))
	}
	// A blamed address may well accept first: it gets no chance to before the good ones have
	// failed or half of the time is over.
	half, cancel := quorum.Share(ctx, 2)
	conn, err := p.dialFirst(half, good)
	late := half.Err() != nil && ctx.Err() == nil
	cancel()
	if err == nil {
		return conn, nil
	}
	if late {
		for _, a := range good {
			p.blames.blame(a, time.Now())
		}
	}
	conn, next := p.dialFirst(ctx, blamed)
	if next != nil {
		return nil, errors.Join(err, next)
	}
	return conn, nil
}

func (p paths) dialFirst(ctx context.Context, addrs []string) (net.Conn, error) {
	conn, errs := quorum.DialFirst(ctx, addrs, pathDelay, func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := p.Network.Dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return &pathConn{conn, addr, p.blames}, nil
	})
	if conn == nil {
		return nil, errors.Join(errs...)
	}
	return conn, nil
}

// pathConn is a connection to a server with several addresses.
type pathConn struct {
	net.Conn
	addr   string // the one of the connection
	blames *blames
}

// BlamePath makes later dials prefer the server's other addresses.
func (c *pathConn) BlamePath() { c.blames.blame(c.addr, time.Now()) }

// blames remembers addresses that accept connections on which no stream works.
type blames struct {
	mu   sync.Mutex
	addr map[string]blame
}

type blame struct {
	at    time.Time // of the last failure
	until time.Time
	last  time.Duration // how long the address is dialled last
}

// blame notes a failure.
func (b *blames) blame(addr string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.addr, func(_ string, x blame) bool { return now.Sub(x.until) > x.last })
	x, again := b.addr[addr]
	switch {
	case !again:
		x.last = firstBlame
	case now.After(x.until): // not another connection that failed at the same time
		x.last = min(2*x.last, maxBlame)
	}
	x.at, x.until = now, now.Add(x.last)
	if b.addr == nil {
		b.addr = make(map[string]blame)
	}
	b.addr[addr] = x
}

// sort separates the addresses that have failed recently from the others. Among those, the
// first is the one that failed first.
func (b *blames) sort(addrs []string, now time.Time) (good, blamed []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, a := range addrs {
		if now.Before(b.addr[a].until) {
			blamed = append(blamed, a)
		} else {
			good = append(good, a)
		}
	}
	slices.SortStableFunc(blamed, func(x, y string) int { return b.addr[x].at.Compare(b.addr[y].at) })
	return good, blamed
}

// Unwrap returns the underlying network.
func (p paths) Unwrap() quorum.Network { return p.Network }
