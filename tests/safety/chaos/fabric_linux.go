package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/zkgo/zkgo/tests/kit/faultnet"
	"github.com/zkgo/zkgo/tests/kit/netns"
)

// These are the networks that an ensemble can run in.
const (
	// Proxies sends every connection through a proxy on the loopback network. It
	// needs no privileges.
	Proxies = "proxy"
	// Namespaces puts every server and every place of clients in its own network
	// namespace, with a packet filter between them. It needs root.
	Namespaces = "netns"
)

// link is one direction from one end of the network to another.
type link interface {
	Cut()
	Slow(d, jitter time.Duration)
	Lose(p float64)
}

// fabric is the network of an ensemble: proxies or namespaces.
type fabric interface {
	link(from, to string) link
	heal()
	// reset breaks the connections that one end has opened to another and returns
	// how many there were.
	reset(from, to string) int
	// attach gives a server its addresses.
	attach(m *Member) error
	// up and down tell the network whether the server's process listens.
	up(m *Member) error
	down(m *Member)
	// enter moves a locked thread to where the server's process must start. It
	// reports whether the thread must end after that.
	enter(m *Member) (end bool, err error)
	// dial connects to an address of a server without any fault in between.
	dial(ctx context.Context, m *Member, addr string) (net.Conn, error)
	// dialFrom connects a client, identified by the number of its place, to a
	// server.
	dialFrom(ctx context.Context, client int, m *Member) (net.Conn, error)
	// clients returns the names of the places that clients have dialled from.
	clients() []string
	close()
}

func newFabric(c *Cluster) (fabric, error) {
	switch c.opt.Network {
	case "", Proxies:
		return newProxies(c)
	case Namespaces:
		return newSpaces(c), nil
	}
	return nil, fmt.Errorf("there is no network %q: %s or %s", c.opt.Network, Proxies, Namespaces)
}

// between calls f with both directions between two ends.
func (s *scene) between(a, b string, f func(link)) {
	f(s.net.link(a, b))
	f(s.net.link(b, a))
}

// proxies is a fabric on the loopback network.
type proxies struct {
	*faultnet.Net
	subnet string // 127.a.b, used by this run alone

	mu    sync.Mutex
	ports map[[2]int]*faultnet.Port // by client and server
}

// newProxies finds addresses and ports that no other process uses. A process that
// listens on the wildcard address occupies the port on our addresses, too.
func newProxies(c *Cluster) (*proxies, error) {
	p := &proxies{Net: faultnet.New(c.opt.Seed), subnet: fmt.Sprintf("127.%d.%d", 64+rand.IntN(128), rand.IntN(256)), ports: map[[2]int]*faultnet.Port{}}
	var err error
	for range 20 {
		port := 10000 + rand.IntN(20000)
		c.ports = ports{quorum: port, election: port + 1, client: port + 2, admin: port + 3}
		if err = free(port, port+1, port+2, port+3); err == nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("no free ports: %w", err)
}

func free(all ...int) error {
	for _, port := range all {
		ln, err := net.Listen("tcp", addr("", port))
		if err != nil {
			return err
		}
		if err := ln.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (p *proxies) link(from, to string) link { return p.Link(from, to) }
func (p *proxies) heal()                     { p.Heal() }
func (p *proxies) reset(from, to string) int { return p.Reset(from, to) }
func (p *proxies) up(m *Member) error        { return p.Up(serverName(m.ID)) }
func (p *proxies) down(m *Member)            { p.Down(serverName(m.ID)) }
func (p *proxies) close()                    { p.Close() }

func (p *proxies) attach(m *Member) error {
	m.dialled, m.listens = fmt.Sprintf("%s.%d", p.subnet, m.ID), fmt.Sprintf("%s.%d", p.subnet, 100+m.ID)
	p.Port(serverName(m.ID), addr(m.dialled, m.c.ports.quorum), addr(m.listens, m.c.ports.quorum), whoDials)
	return nil
}

func (p *proxies) enter(*Member) (bool, error) { return false, nil }

func (p *proxies) dial(ctx context.Context, _ *Member, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", addr)
}

// dialFrom gives every pair of place and server its own proxy.
func (p *proxies) dialFrom(ctx context.Context, client int, m *Member) (net.Conn, error) {
	p.mu.Lock()
	key := [2]int{client, m.ID}
	port := p.ports[key]
	if port == nil {
		var err error
		if port, err = p.PortFrom(clientName(client), serverName(m.ID), p.subnet+".200", m.ClientAddr()); err != nil {
			p.mu.Unlock()
			return nil, err
		}
		p.ports[key] = port
	}
	p.mu.Unlock()
	return p.dial(ctx, m, port.Addr())
}

func (p *proxies) clients() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var names []string
	for key := range p.ports {
		if n := clientName(key[0]); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

// spaces is a fabric of network namespaces.
type spaces struct {
	*netns.Net

	mu      sync.Mutex
	servers map[int]*netns.Host
	places  map[int]*netns.Host // of clients
}

func newSpaces(c *Cluster) *spaces {
	c.ports = ports{quorum: 2888, election: 3888, client: 2181, admin: 8080}
	return &spaces{Net: netns.New(c.opt.Seed), servers: map[int]*netns.Host{}, places: map[int]*netns.Host{}}
}

func (s *spaces) link(from, to string) link { return s.Link(from, to) }
func (s *spaces) heal()                     { s.Heal() }
func (s *spaces) up(*Member) error          { return nil }
func (s *spaces) down(*Member)              {}
func (s *spaces) close()                    { _ = s.Close() }

func (s *spaces) reset(from, to string) int {
	return s.Reset(slices.DeleteFunc(s.Conns(), func(c netns.Conn) bool { return c.From != from || c.To != to })...)
}

func (s *spaces) attach(m *Member) error {
	h, err := s.Host(serverName(m.ID))
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.servers[m.ID] = h
	s.mu.Unlock()
	m.dialled, m.listens = h.Addr().String(), h.Addr().String()
	return nil
}

func (s *spaces) server(m *Member) *netns.Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.servers[m.ID]
}

func (s *spaces) enter(m *Member) (bool, error) { return true, s.server(m).Enter() }

func (s *spaces) dial(ctx context.Context, m *Member, addr string) (net.Conn, error) {
	return s.server(m).Dial(ctx, addr)
}

func (s *spaces) dialFrom(ctx context.Context, client int, m *Member) (net.Conn, error) {
	s.mu.Lock()
	h := s.places[client]
	if h == nil {
		var err error
		if h, err = s.Host(clientName(client)); err != nil {
			s.mu.Unlock()
			return nil, err
		}
		s.places[client] = h
	}
	s.mu.Unlock()
	return h.Dial(ctx, m.ClientAddr())
}

func (s *spaces) clients() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for n := range s.places {
		names = append(names, clientName(n))
	}
	slices.Sort(names)
	return names
}
