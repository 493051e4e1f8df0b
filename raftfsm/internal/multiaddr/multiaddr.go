package multiaddr

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

const (
	// pathDelay is the head start of each address over the next.
	pathDelay = 100 * time.Millisecond
	// firstBlame is the time after a failure for which an address is dialled last. The
	// time doubles, up to maxBlame, if the address fails again soon after it.
	firstBlame = 30 * time.Second
	maxBlame   = 8 * time.Minute
)

// Network is a network in which a server may have several addresses.
type Network struct {
	quorum.Network
	// Alternates returns the other addresses of the server with first address addr.
	Alternates func(addr string) []string
	Blames     *Blames
}

// Dial implements quorum.Network.
func (p Network) Dial(ctx context.Context, addr string) (net.Conn, error) {
	others := p.Alternates(addr)
	if len(others) == 0 {
		return p.Network.Dial(ctx, addr)
	}
	good, blamed := p.Blames.sort(append([]string{addr}, others...), time.Now())
	if len(good) == 0 || len(blamed) == 0 {
		return p.dialFirst(ctx, append(good, blamed...))
	}
	// A blamed address may well accept first: it gets no chance to before the good
	// addresses have failed or half of the time is over.
	half, cancel := quorum.Share(ctx, 2)
	conn, err := p.dialFirst(half, good)
	late := half.Err() != nil && ctx.Err() == nil
	cancel()
	if err == nil {
		return conn, nil
	}
	if late {
		for _, a := range good {
			p.Blames.blame(a, time.Now())
		}
	}
	conn, next := p.dialFirst(ctx, blamed)
	if next != nil {
		return nil, errors.Join(err, next)
	}
	return conn, nil
}

func (p Network) dialFirst(ctx context.Context, addrs []string) (net.Conn, error) {
	conn, errs := quorum.DialFirst(ctx, addrs, pathDelay, func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := p.Network.Dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		return &pathConn{conn, addr, p.Blames}, nil
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
	blames *Blames
}

// BlamePath makes later dials prefer the server's other addresses.
func (c *pathConn) BlamePath() { c.blames.blame(c.addr, time.Now()) }

// Blames remembers addresses that accept connections on which no stream works.
type Blames struct {
	mu   sync.Mutex
	addr map[string]blame
}

type blame struct {
	at    time.Time // of the last failure
	until time.Time
	last  time.Duration // time for which the address is dialled last
}

// blame notes a failure.
func (b *Blames) blame(addr string, now time.Time) {
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
func (b *Blames) sort(addrs []string, now time.Time) (good, blamed []string) {
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
func (p Network) Unwrap() quorum.Network { return p.Network }
