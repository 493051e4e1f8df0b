package membership

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A reconfig is effective as soon as it is applied, and every server writes the new list
// to its configuration file. We therefore refuse a list with which the servers couldn't
// start, with BadArguments. ZooKeeper checks only the addresses of servers that join or
// change in an incremental reconfig, and never loopback addresses.
//
// We don't resolve names, because all servers have to come to the same verdict. Two hosts
// are the same if their texts are, or if they are notations of the same IP address.

// listener is an address at which a server of a list listens. Two listeners with the same
// key can't exist at the same time.
type listener struct {
	server uint64
	client bool // for clients, otherwise for the other servers
	all    bool // at all addresses of the host
	key    string
}

func (l *listener) what() string {
	if l.client {
		return "client address"
	}
	return "quorum address"
}

// listenKey returns the key of a listener at addr. It is "" for a wildcard, which doesn't
// name a host, and for a port that the system chooses.
func listenKey(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	n, invalid := strconv.ParseUint(port, 10, 16)
	if err != nil || invalid != nil || n == 0 || Wildcard(host) {
		return ""
	}
	return net.JoinHostPort(hostKey(host), strconv.FormatUint(n, 10))
}

func hostKey(host string) string {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().String()
	}
	return strings.ToLower(host)
}

// listeners returns the server's listeners. One for clients at all addresses of its host
// is represented by one at each host that the line names.
func (m *Member) listeners() []listener {
	var all []listener
	add := func(client, everywhere bool, addr string) {
		if key := listenKey(addr); key != "" {
			all = append(all, listener{m.ID, client, everywhere, key})
		}
	}
	for _, addr := range m.QuorumAddrs() {
		add(false, false, addr)
	}
	host, port, err := net.SplitHostPort(m.ClientAddr)
	if err != nil || !Wildcard(host) {
		add(true, false, m.ClientAddr)
		return all
	}
	for _, addr := range m.QuorumAddrs() {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			add(true, true, net.JoinHostPort(host, port))
		}
	}
	return all
}

// listening has the listeners of a list by key.
type listening map[string]listener

// claim adds a listener. It returns an error if another server has a listener with the
// same key. Two servers for clients at all addresses of one host may be on different
// machines, to which the host forwards the ports.
func (all listening) claim(l listener) error {
	other, taken := all[l.key]
	switch {
	case !taken:
		all[l.key] = l
	case other.server == l.server, other.all && l.all:
	case other.client || l.client:
		return fmt.Errorf("the %s of server.%d and the %s of server.%d are the same, %s: give each server its own host or port",
			other.what(), other.server, l.what(), l.server, l.key)
	default:
		return fmt.Errorf("server.%d and server.%d have the same quorum address %s: give each server its own host or port", other.server, l.server, l.key)
	}
	return nil
}

// SameAddress returns an error for each server that would have to listen for the other
// servers at another server's address.
func SameAddress(members []Member) error {
	all := make(listening)
	var errs []error
	for i := range members {
		for _, l := range members[i].listeners() {
			if l.client {
				continue // another server's client port may be a setting in its own file
			}
			if err := all.claim(l); err != nil {
				errs = append(errs, err)
				break
			}
		}
	}
	return errors.Join(errs...)
}

// ValidHost reports whether a host contains only characters that a name or an address can
// have. It rejects quotes, and the bytes of letters outside ASCII.
func ValidHost(host string) bool {
	return !strings.ContainsFunc(host, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'`,;=<>()\\/@#!?", r)
	})
}

// checkLine returns an error for a line that its own server couldn't start with.
func (m *Member) checkLine() error {
	_, client, _ := net.SplitHostPort(m.ClientAddr)
	seen := make(map[string]bool)
	for _, addr := range append(m.QuorumAddrs(), m.ClientAddr) {
		if host, _, err := net.SplitHostPort(addr); err == nil && !ValidHost(host) {
			return fmt.Errorf("server.%d: %q is not a host: want a name or an address in ASCII, without quotes", m.ID, host)
		}
	}
	for _, addr := range m.QuorumAddrs() {
		// Even if the hosts differ, the server may be set to listen on all hosts.
		if _, port, err := net.SplitHostPort(addr); err == nil && samePort(port, client) {
			return fmt.Errorf("server.%d: the port for clients is the one for the other servers, %s: give one of them another port", m.ID, port)
		}
		key := listenKey(addr)
		if key != "" && seen[key] {
			return fmt.Errorf("server.%d has the quorum address %s twice", m.ID, key)
		}
		seen[key] = true
	}
	return nil
}

// samePort reports whether two ports are the same and not chosen by the system.
func samePort(a, b string) bool {
	x, err := strconv.ParseUint(a, 10, 16)
	y, also := strconv.ParseUint(b, 10, 16)
	return err == nil && also == nil && x == y && x != 0
}

// Conflict returns an error if the servers of m can't change to next because of its new
// addresses: two servers have the same address, or a server gets an address at which
// another server listens now. In the latter case each server might wait for the other.
// We don't wait for a server that is on the list for the first time.
func (m *List) Conflict(next *List) error {
	before, after := make(listening), make(listening)
	for i := range m.Members {
		for _, l := range m.Members[i].listeners() {
			_ = before.claim(l)
		}
	}
	var changed []listener
	for i := range next.Members {
		x := &next.Members[i]
		var had []listener
		was := m.Member(x.ID)
		if was != nil {
			had = was.listeners()
		}
		if was == nil || was.Line() != x.Line() {
			if err := x.checkLine(); err != nil {
				return err
			}
		}
		for _, l := range x.listeners() {
			if slices.Contains(had, l) {
				_ = after.claim(l)
			} else {
				changed = append(changed, l)
			}
		}
	}
	for _, l := range changed {
		if err := after.claim(l); err != nil {
			return err
		}
		holder, taken := before[l.key]
		if taken && holder.server == l.server && holder.client == l.client {
			continue // it changes from one address to all addresses, or the other way round
		}
		if taken && !(holder.all && l.all) && next.Lists(holder.server) && m.runsAt(l.server, l.key) {
			return fmt.Errorf("%s is to be the %s of server.%d, and is the %s of server.%d now: give server.%[5]d another one first, with a separate reconfig",
				l.key, l.what(), l.server, holder.what(), holder.server)
		}
	}
	return nil
}

// runsAt reports whether, according to m, a server is on the host of a key.
func (m *List) runsAt(server uint64, key string) bool {
	was := m.Member(server)
	if was == nil {
		return false
	}
	host, _, _ := net.SplitHostPort(key)
	return slices.ContainsFunc(append(was.QuorumAddrs(), was.ClientAddr), func(addr string) bool {
		h, _, err := net.SplitHostPort(addr)
		return err == nil && hostKey(h) == host
	})
}
