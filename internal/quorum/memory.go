package quorum

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Memory is a network of named hosts inside one process, with fault injection. Every
// fault belongs to a directed link from host a to host b. Memory uses no sockets, so it
// also works in fake time.
type Memory struct {
	mu        sync.Mutex
	listeners map[string]*memListener // by host:port
	links     map[linkKey]*linkState
	conns     map[*memConn]struct{}
	dead      map[string]bool // killed, and hasn't listened since
	nextPort  int
}

type linkKey struct{ from, to string }

// linkState is the faults of a directed link.
type linkState struct {
	held   bool
	lose   int // packets of this size and larger are lost; 0: none
	delay  time.Duration
	jitter time.Duration
}

// NewMemory returns a network without hosts or faults.
func NewMemory() *Memory {
	return &Memory{
		listeners: make(map[string]*memListener),
		links:     make(map[linkKey]*linkState),
		conns:     make(map[*memConn]struct{}),
		dead:      make(map[string]bool),
		nextPort:  49152,
	}
}

// Host returns the network as the named host sees it.
func (m *Memory) Host(name string) Network { return memHost{m: m, name: name} }

// Hold stops delivery from one host to another. No data is lost: as with TCP over a dead
// link, it arrives after Heal. Until then, new connections between the two hosts fail, in
// either direction.
func (m *Memory) Hold(from, to string) { m.change(from, to, func(l *linkState) { l.held = true }) }

// Jitter delays each write from one host to another by a random time, up to d.
// Connections may overtake one another; the data of one connection stays in order.
func (m *Memory) Jitter(from, to string, d time.Duration) {
	m.change(from, to, func(l *linkState) { l.jitter = d })
}

// Lose drops the packets of size bytes or more from one host to another, like a tunnel
// with a wrong MTU. A connection that has lost one delivers nothing until Heal, when TCP
// resends it. Every write is one packet.
func (m *Memory) Lose(from, to string, size int) {
	m.change(from, to, func(l *linkState) { l.lose = size })
}

// Forget makes the network drop everything on the established connections that match, in
// both directions and permanently, like a firewall that has lost its state. Neither side
// notices. New connections aren't affected. Forget returns the number of connections.
func (m *Memory) Forget(match func(dialer, acceptor string) bool) (forgotten int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.conns {
		if !c.dialed || !match(c.local, c.remote) {
			continue
		}
		forgotten++
		for _, h := range []*half{c.in, c.out} {
			h.update(func() { h.lost = true })
		}
	}
	return forgotten
}

// Connections calls each with the hosts of every established connection.
func (m *Memory) Connections(each func(dialer, acceptor string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for c := range m.conns {
		if c.dialed {
			each(c.local, c.remote)
		}
	}
}

// Heal ends Hold, Lose, Delay and Jitter on a directed link.
func (m *Memory) Heal(from, to string) {
	m.change(from, to, func(l *linkState) { *l = linkState{} })
}

// Delay delays everything sent from one host to another by d.
func (m *Memory) Delay(from, to string, d time.Duration) {
	m.change(from, to, func(l *linkState) { l.delay = d })
}

// Partition calls Hold for all links between the two groups, in both directions.
func (m *Memory) Partition(a, b []string) { m.eachPair(a, b, m.Hold) }

// Rejoin heals all links between the two groups, in both directions.
func (m *Memory) Rejoin(a, b []string) { m.eachPair(a, b, m.Heal) }

func (m *Memory) eachPair(a, b []string, f func(from, to string)) {
	for _, x := range a {
		for _, y := range b {
			f(x, y)
			f(y, x)
		}
	}
}

// Reset breaks every connection between two hosts.
func (m *Memory) Reset(a, b string) {
	m.breakConns(func(c *memConn) bool {
		return c.local == a && c.remote == b || c.local == b && c.remote == a
	})
}

// Kill simulates the death of a process: its listeners close, its connections are reset,
// and it can't dial until it listens again.
func (m *Memory) Kill(host string) {
	m.mu.Lock()
	m.dead[host] = true
	var dead []*memListener
	for _, l := range m.listeners {
		if l.host == host {
			dead = append(dead, l)
		}
	}
	m.mu.Unlock()
	for _, l := range dead {
		_ = l.Close()
	}
	m.breakConns(func(c *memConn) bool { return c.local == host || c.remote == host })
}

func (m *Memory) breakConns(match func(*memConn) bool) {
	m.mu.Lock()
	var hit []*memConn
	for c := range m.conns {
		if match(c) {
			hit = append(hit, c)
		}
	}
	m.mu.Unlock()
	for _, c := range hit {
		c.in.fail(syscall.ECONNRESET)
		c.out.fail(syscall.ECONNRESET)
	}
}

func (m *Memory) change(from, to string, f func(*linkState)) {
	m.mu.Lock()
	key := linkKey{from, to}
	l := m.links[key]
	if l == nil {
		l = new(linkState)
		m.links[key] = l
	}
	f(l)
	var woken []*memConn
	for c := range m.conns {
		if c.local == from && c.remote == to {
			woken = append(woken, c)
		}
	}
	state := *l
	m.mu.Unlock()
	for _, c := range woken {
		c.out.setLink(state)
	}
}

func (m *Memory) link(from, to string) linkState {
	if l := m.links[linkKey{from, to}]; l != nil {
		return *l
	}
	return linkState{}
}

type memHost struct {
	m    *Memory
	name string
}

// Listen opens a port of the host. The host part of addr must be the host's own name,
// empty or a wildcard; port 0 picks a free port.
func (h memHost) Listen(addr string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if host != h.name && host != "" && host != "0.0.0.0" && host != "::" {
		return nil, opError("listen", addr, syscall.EADDRNOTAVAIL)
	}
	h.m.mu.Lock()
	defer h.m.mu.Unlock()
	if port == "0" {
		port = strconv.Itoa(h.m.nextPort)
		h.m.nextPort++
	}
	full := net.JoinHostPort(h.name, port)
	if h.m.listeners[full] != nil {
		return nil, opError("listen", full, syscall.EADDRINUSE)
	}
	delete(h.m.dead, h.name)
	l := &memListener{m: h.m, host: h.name, addr: memAddr(full),
		backlog: make(chan *memConn, 128), done: make(chan struct{})}
	h.m.listeners[full] = l
	return l, nil
}

// Dial connects to another host; without a listener there the connection is refused.
func (h memHost) Dial(ctx context.Context, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	const poll = 5 * time.Millisecond
	for {
		conn, blocked, err := h.m.connect(h.name, host, addr)
		if !blocked {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, opError("dial", addr, ctx.Err())
		case <-time.After(poll):
		}
	}
}

func (m *Memory) connect(from, to, addr string) (conn net.Conn, blocked bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead[from] {
		return nil, false, opError("dial", addr, net.ErrClosed)
	}
	there, back := m.link(from, to), m.link(to, from)
	if there.held || back.held {
		return nil, true, nil
	}
	l := m.listeners[addr]
	if l == nil {
		return nil, false, opError("dial", addr, syscall.ECONNREFUSED)
	}
	a, b := newHalf(there), newHalf(back)
	dialer := &memConn{m: m, dialed: true, local: from, remote: to, in: b, out: a, laddr: memAddr(from + ":0"), raddr: l.addr}
	acceptor := &memConn{m: m, local: to, remote: from, in: a, out: b, laddr: l.addr, raddr: memAddr(from + ":0")}
	select {
	case l.backlog <- acceptor:
	default:
		return nil, true, nil
	}
	m.conns[dialer], m.conns[acceptor] = struct{}{}, struct{}{}
	return dialer, false, nil
}

type memAddr string

func (memAddr) Network() string  { return "memory" }
func (a memAddr) String() string { return string(a) }

func opError(op, addr string, err error) error {
	return &net.OpError{Op: op, Net: "memory", Addr: memAddr(addr), Err: err}
}

type memListener struct {
	m       *Memory
	host    string
	addr    memAddr
	backlog chan *memConn
	once    sync.Once
	done    chan struct{}
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case <-l.done:
		return nil, opError("accept", string(l.addr), net.ErrClosed)
	default:
	}
	select {
	case c := <-l.backlog:
		return c, nil
	case <-l.done:
		return nil, opError("accept", string(l.addr), net.ErrClosed)
	}
}

func (l *memListener) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		delete(l.m.listeners, string(l.addr))
		close(l.done)
		l.m.mu.Unlock()
		for {
			select {
			case c := <-l.backlog:
				c.in.fail(syscall.ECONNRESET)
				c.out.fail(syscall.ECONNRESET)
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}

func (l *memListener) Addr() net.Addr { return l.addr }

// Refused reports whether a connection failed because no process listens there: the host is
// up but the process isn't.
func Refused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// IsTimeout reports whether err is a missed deadline.
func IsTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
