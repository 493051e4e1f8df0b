package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"time"
)

// Net is a network of hosts. Its methods may be called concurrently.
type Net struct {
	table table
	wg    sync.WaitGroup

	mu    sync.Mutex
	rand  *rand.Rand
	hosts []*Host
	links map[way]*Link
}

// way is a direction between two hosts.
type way struct{ from, to string }

// New returns a network without hosts. The packets that Lose drops and the delays
// that Slow adds follow from seed.
func New(seed uint64) *Net {
	return &Net{table: table{conns: make(map[pair]*Conn)}, rand: rand.New(rand.NewPCG(seed, 3)), links: make(map[way]*Link)}
}

// subnet is used by every Net: each is isolated in its namespaces. /24.
var subnet = [3]byte{10, 77, 0}

// maxHosts is the number of addresses.
const maxHosts = 254

// Host adds a host with a unique name. Addresses are in the order in which hosts
// are added: the first is 10.77.0.1.
func (n *Net) Host(name string) (*Host, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, h := range n.hosts {
		if h.name == name {
			return nil, fmt.Errorf("netns: there is a host %s already", name)
		}
	}
	if len(n.hosts) == maxHosts {
		return nil, fmt.Errorf("netns: no more than %d hosts", maxHosts)
	}
	h, err := newHost(name, netip.AddrFrom4([4]byte{subnet[0], subnet[1], subnet[2], byte(len(n.hosts) + 1)}))
	if err != nil {
		return nil, fmt.Errorf("netns: host %s: %w", name, err)
	}
	n.hosts = append(n.hosts, h)
	n.wg.Go(func() { n.carry(h) })
	return h, nil
}

// Link returns the direction from one host to another, by their names. It panics
// if there is no such host.
func (n *Net) Link(from, to string) *Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.link(from, to)
}

func (n *Net) link(from, to string) *Link {
	l := n.links[way{from, to}]
	if l == nil {
		l = &Link{rand: rand.New(rand.NewPCG(n.rand.Uint64(), 4)), deliver: n.named(to).receive}
		n.links[way{from, to}] = l
	}
	return l
}

// Between calls f with both directions between two hosts.
func (n *Net) Between(a, b string, f func(*Link)) {
	f(n.Link(a, b))
	f(n.Link(b, a))
}

// Heal heals every link. Forgotten connections stay forgotten: a firewall does not recover its
// state.
func (n *Net) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.links {
		l.Heal()
	}
}

// Conns returns the connections between hosts that are established now and were
// neither forgotten nor reset, oldest first.
func (n *Net) Conns() []Conn { return n.table.live() }

// Forget drops every further packet of connections, in both directions and
// permanently, like a firewall that has lost its state. No end is notified. A new
// connection works, also from the same port. Forget returns how many of the
// connections still existed.
func (n *Net) Forget(conns ...Conn) int {
	return n.table.mark(conns, func(s *connState) { s.forgotten = true })
}

// Reset breaks connections: each end gets a TCP reset, immediately or in reply to
// the next packet that it sends. Reset returns how many of the connections still
// existed.
func (n *Net) Reset(conns ...Conn) int {
	count := n.table.mark(conns, func(s *connState) { s.reset = true })
	for _, c := range conns {
		toFrom := packet{src: c.Src, dst: c.Dst, ack: c.state.acks[0]}
		toTo := packet{src: c.Dst, dst: c.Src, ack: c.state.acks[1]}
		n.host(c.From).receive(toFrom.reset())
		n.host(c.To).receive(toTo.reset())
	}
	return count
}

// Close ends the network. Processes in its namespaces keep running without a network.
func (n *Net) Close() error {
	n.mu.Lock()
	hosts := n.hosts
	for _, l := range n.links {
		l.stop()
	}
	n.mu.Unlock()
	var err error
	for _, h := range hosts {
		err = errors.Join(err, h.close())
	}
	n.wg.Wait()
	return err
}

// carry forwards a host's packets until the host is closed.
func (n *Net) carry(from *Host) {
	buf := make([]byte, 64<<10)
	for {
		size, err := from.tun.Read(buf)
		if err != nil {
			return
		}
		p, ok := parse(buf[:size])
		if !ok {
			continue // IPv6: no host has such an address
		}
		n.route(from, &p)
	}
}

func (n *Net) route(from *Host, p *packet) {
	to := n.at(p.dst.Addr())
	if to == nil {
		return
	}
	v := forward
	if p.tcp {
		v = n.table.see(p, from.name, to.name, time.Now())
	}
	switch v {
	case forward:
		n.Link(from.name, to.name).send(p.raw)
	case refuse:
		from.receive(p.reset())
	case drop:
	}
}

// at returns the host with an address, or nil if there is none.
func (n *Net) at(addr netip.Addr) *Host {
	b := addr.As4()
	n.mu.Lock()
	defer n.mu.Unlock()
	i := int(binary.BigEndian.Uint32(b[:]) - binary.BigEndian.Uint32(append(subnet[:], 1)))
	if i < 0 || i >= len(n.hosts) {
		return nil
	}
	return n.hosts[i]
}

func (n *Net) host(name string) *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.named(name)
}

// named returns a host. The caller holds the lock.
func (n *Net) named(name string) *Host {
	for _, h := range n.hosts {
		if h.name == name {
			return h
		}
	}
	panic(fmt.Sprintf("netns: there is no host %s", name))
}
