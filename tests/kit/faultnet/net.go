package faultnet

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Net is a network of named ends.
type Net struct {
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu    sync.Mutex
	rand  *rand.Rand
	links map[way]*Link
	pairs map[way]map[*pair]struct{} // by the end that dialled
	ports []*Port
}

// way is a direction between two ends.
type way struct{ from, to string }

// New returns a network. Its delays and losses follow from seed.
func New(seed uint64) *Net {
	n := &Net{links: make(map[way]*Link), pairs: make(map[way]map[*pair]struct{}), rand: rand.New(rand.NewPCG(seed, 1))}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	return n
}

// Link returns the path from one end to another.
func (n *Net) Link(from, to string) *Link {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.links[way{from, to}]
	if l == nil {
		l = &Link{rand: rand.New(rand.NewPCG(n.rand.Uint64(), 2))}
		n.links[way{from, to}] = l
	}
	return l
}

// Between calls f with both directions between two ends.
func (n *Net) Between(a, b string, f func(*Link)) {
	f(n.Link(a, b))
	f(n.Link(b, a))
}

// Heal heals every link.
func (n *Net) Heal() {
	n.mu.Lock()
	var all []*Link
	for _, l := range n.links {
		all = append(all, l)
	}
	n.mu.Unlock()
	for _, l := range all {
		l.Heal()
	}
}

// Reset breaks the connections that one end has dialled to another, and returns
// how many there were.
func (n *Net) Reset(from, to string) int {
	n.mu.Lock()
	var open []*pair
	for p := range n.pairs[way{from, to}] {
		open = append(open, p)
	}
	n.mu.Unlock()
	for _, p := range open {
		p.reset()
	}
	return len(open)
}

// Close breaks all connections and waits until they have ended.
func (n *Net) Close() {
	n.cancel()
	n.mu.Lock()
	ports := n.ports
	var open []*pair
	for _, pairs := range n.pairs {
		for p := range pairs {
			open = append(open, p)
		}
	}
	n.mu.Unlock()
	for _, p := range ports {
		p.Down()
	}
	for _, p := range open {
		p.reset()
	}
	n.wg.Wait()
}

// portsOf returns the ports of an end.
func (n *Net) portsOf(end string) []*Port {
	n.mu.Lock()
	defer n.mu.Unlock()
	var of []*Port
	for _, p := range n.ports {
		if p.to == end {
			of = append(of, p)
		}
	}
	return of
}

// Up makes every port of an end accept connections.
func (n *Net) Up(end string) error {
	var err error
	for _, p := range n.portsOf(end) {
		err = errors.Join(err, p.Up())
	}
	return err
}

// Down makes every port of an end refuse connections.
func (n *Net) Down(end string) {
	for _, p := range n.portsOf(end) {
		p.Down()
	}
}

// mirror closes the ports of an end that is gone.
func (n *Net) mirror(end string) {
	for _, p := range n.portsOf(end) {
		p.mirror()
	}
}

// serve carries a dialled connection until it ends. The dialler's first bytes
// have already been read.
func (n *Net) serve(conn *net.TCPConn, p *Port, from string, first []byte) {
	there, back := n.Link(from, p.to), n.Link(p.to, from)
	// Neither the first packet nor its reply may pass a cut.
	if !there.pass(n.ctx.Done()) || !back.pass(n.ctx.Done()) {
		_ = conn.Close()
		return
	}
	target, err := p.dial(n.ctx)
	if err != nil {
		p.mirror()
		_ = conn.SetLinger(0)
		_ = conn.Close()
		return
	}
	pair := newPair(conn, target)
	pair.gone = func(dialler bool) {
		if dialler {
			n.mirror(from)
		} else {
			n.mirror(p.to)
		}
	}
	if !n.add(way{from, p.to}, pair) {
		pair.reset()
		return
	}
	pair.run(there, back, first)
	n.remove(way{from, p.to}, pair)
}

func (n *Net) add(w way, p *pair) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return false
	}
	if n.pairs[w] == nil {
		n.pairs[w] = make(map[*pair]struct{})
	}
	n.pairs[w][p] = struct{}{}
	return true
}

func (n *Net) remove(w way, p *pair) {
	n.mu.Lock()
	delete(n.pairs[w], p)
	n.mu.Unlock()
}

// dialTimeout bounds a dial to a process on this machine that may be stopped.
const dialTimeout = 5 * time.Second

func (p *Port) dial(ctx context.Context) (*net.TCPConn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	conn, err := d.DialContext(ctx, "tcp", p.target)
	if err != nil {
		return nil, err
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		_ = conn.Close()
		return nil, errors.New("not a TCP connection")
	}
	return tcp, nil
}
