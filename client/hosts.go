package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// hosts is the list of servers and the order in which to try them. Only the goroutine
// that connects uses it.
type hosts struct {
	cfg   *config
	seed  []string // host:port, as in the connect string
	names []string // newer ones from the ensemble's configuration, or seed
	again bool     // the previous round reached no server
	round []target // the rest of this round
	last  string   // the address of the last connection

	unresolved []ConnectFailure // the names that the last lookup could not resolve
}

// target is one address to try.
type target struct {
	name string // host:port as configured; the certificate must match it
	addr string // ip:port, or name if the dialer resolves it
}

func newHosts(cfg *config, names []string) *hosts {
	return &hosts{cfg: cfg, seed: names, names: names}
}

// next returns the next address. last reports that it is the last one of this round. We
// resolve the names again for every round.
func (h *hosts) next(ctx context.Context) (t target, last bool, err error) {
	if len(h.round) == 0 {
		// The addresses in the ensemble's configuration may be unreachable from here, e.g.
		// behind NAT.
		names := h.names
		if h.again {
			names = h.seed
		}
		h.again = !h.again
		if h.round, err = h.lookUp(ctx, names); len(h.round) == 0 {
			return target{}, true, err
		}
	}
	t, h.round = h.round[0], h.round[1:]
	return t, len(h.round) == 0, nil
}

// restart makes the next call of next begin a new round. In that round we try the server of
// the last connection last, because it has just gone away.
func (h *hosts) restart() { h.round, h.again = nil, false }

// lookUp resolves the names and returns each address once, in random order.
func (h *hosts) lookUp(ctx context.Context, names []string) ([]target, error) {
	var all []target
	var failed []string
	h.unresolved = nil
	for _, name := range names {
		addrs, err := h.addrs(ctx, name)
		if err != nil {
			failed = append(failed, err.Error())
			h.unresolved = append(h.unresolved, ConnectFailure{Server: name, Err: err})
			continue
		}
		for _, a := range addrs {
			t := target{name, a}
			if !slices.ContainsFunc(all, func(x target) bool { return x.addr == a }) {
				all = append(all, t)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cannot resolve any server name: %s", strings.Join(failed, "; "))
	}
	if h.cfg.shuffle {
		rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	}
	if i := slices.IndexFunc(all, func(t target) bool { return t.addr == h.last }); i >= 0 {
		t := all[i]
		all = append(slices.Delete(all, i, i+1), t)
	}
	return all, nil
}

// takeUnresolved returns the names that the last lookup could not resolve, and clears
// the list.
func (h *hosts) takeUnresolved() []ConnectFailure {
	list := h.unresolved
	h.unresolved = nil
	return list
}

// addrs resolves one name.
func (h *hosts) addrs(ctx context.Context, name string) ([]string, error) {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return nil, err
	}
	if h.cfg.dialer != nil && h.cfg.resolver == nil {
		return []string{name}, nil
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{name}, nil
	}
	look := h.cfg.resolver
	if look == nil {
		look = net.DefaultResolver.LookupHost
	}
	ips, err := look(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", host, err)
	}
	for i, ip := range ips {
		ips[i] = net.JoinHostPort(ip, port)
	}
	return ips, nil
}

// first returns one server's name, for a message.
func (h *hosts) first() string {
	if len(h.names) == 0 {
		return ""
	}
	return h.names[0]
}

// size returns the number of servers, at least 1.
func (h *hosts) size() int { return max(1, len(h.names)) }
