package quorum

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// Servers that are configured by name must keep working while DNS is slow or down, even
// if the leader fails at that time. Therefore
//
//   - a lookup may outlive the attempt to connect that started it. An attempt is often
//     shorter than a lookup, and the next attempt would have to start over;
//   - the last known addresses remain usable. We dial them if a lookup fails or lasts
//     longer than lookupPatience. A successful lookup replaces them, also for attempts in
//     progress. The handshake verifies that the right server answers.

const (
	// lookupPatience limits how long we wait for a lookup before we dial the last known
	// addresses. It counts from the start of the lookup, which several attempts may
	// share.
	lookupPatience = 100 * time.Millisecond
	// lookupLimit bounds one lookup.
	lookupLimit = 15 * time.Second
	// MaxNames limits the number of names that we cache addresses for. It is also the
	// limit for a list of servers.
	MaxNames = 4096
)

// names looks up the addresses of hosts, one lookup for each host at a time, and keeps
// the results.
type names struct {
	mu     sync.Mutex
	hosts  map[string]*hostName
	ctx    context.Context // of the lookups; nil: none has begun since the last stop
	cancel context.CancelFunc
}

// hostName is the cached state of one name. names.mu guards it.
type hostName struct {
	addrs   []string // found by the last successful lookup
	pending *lookup  // nil: none
}

// lookup is one lookup. addrs and err may be read once done is closed.
type lookup struct {
	began time.Time
	done  chan struct{}
	addrs []string
	err   error
}

// begin starts a lookup of a host unless one is under way, and returns it together with
// the last known addresses.
func (n *names) begin(host string, resolve Resolver) (l *lookup, known []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	h := n.hosts[host]
	if h == nil {
		n.makeRoom()
		h = new(hostName)
		n.hosts[host] = h
	}
	if h.pending == nil {
		h.pending = &lookup{began: time.Now(), done: make(chan struct{})}
		if n.ctx == nil {
			n.ctx, n.cancel = context.WithCancel(context.Background())
		}
		go n.run(n.ctx, h, h.pending, host, resolve)
	}
	return h.pending, h.addrs
}

// stop ends the lookups under way.
func (n *names) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx != nil {
		n.cancel()
		n.ctx = nil
	}
}

// makeRoom evicts a name if there are too many. The caller must hold n.mu.
func (n *names) makeRoom() {
	if n.hosts == nil {
		n.hosts = make(map[string]*hostName)
	}
	for host := range n.hosts {
		if len(n.hosts) < MaxNames {
			return
		}
		delete(n.hosts, host)
	}
}

// run carries out a lookup. No attempt to connect ends ctx.
func (n *names) run(ctx context.Context, h *hostName, l *lookup, host string, resolve Resolver) {
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	found, err := resolve(ctx, host)
	for _, a := range found {
		l.addrs = append(l.addrs, a.Unmap().String())
	}
	if l.err = err; err == nil && len(l.addrs) == 0 {
		l.err = &net.DNSError{Err: "no address", Name: host, IsNotFound: true}
	}
	n.mu.Lock()
	h.pending = nil
	if l.err == nil {
		h.addrs = l.addrs
	}
	n.mu.Unlock()
	close(l.done)
}

// find returns the addresses to dial for a host. If this lookup failed, find returns its
// error and the addresses of an earlier lookup. If it is slow, find returns those and the
// lookup.
func (n *names) find(ctx context.Context, host string, resolve Resolver) (addrs []string, slow *lookup, err error) {
	l, known := n.begin(host, resolve)
	var enough <-chan time.Time // nil: only the lookup's result helps
	if len(known) > 0 {
		timer := time.NewTimer(time.Until(l.began.Add(lookupPatience)))
		defer timer.Stop()
		enough = timer.C
	}
	select {
	case <-l.done:
		if l.err != nil {
			return known, nil, l.err
		}
		return l.addrs, nil, nil
	case <-enough:
		return known, l, nil
	case <-ctx.Done():
		return nil, nil, &net.DNSError{UnwrapErr: ctx.Err(), Err: "no answer yet", Name: host,
			IsTimeout: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	}
}

// until returns a context that ends when the lookup finds other addresses than known.
func (l *lookup) until(ctx context.Context, known []string) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if l != nil {
		go func() {
			select {
			case <-l.done:
				if l.moved(known) {
					cancel()
				}
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// moved reports whether the lookup is done and has found other addresses than known.
func (l *lookup) moved(known []string) bool {
	if l == nil {
		return false
	}
	select {
	case <-l.done:
		return l.err == nil && !slices.Equal(l.addrs, known)
	default:
		return false
	}
}
