package quorum

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// target packs a server's id and address into the one string that raft.NetworkTransport
// passes to its stream layer and uses as the key of its pool.
func target(id raft.ServerID, addr raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(string(id) + "@" + string(addr))
}

func splitTarget(t raft.ServerAddress) (id, addr string, err error) {
	id, addr, ok := strings.Cut(string(t), "@")
	if !ok {
		return "", "", fmt.Errorf("quorum: no server id in target %q", t)
	}
	return id, addr, nil
}

// streams is the raft.StreamLayer over a hub. A hub outlives the Raft instance that uses
// it; Close closes only what belongs to that instance.
type streams struct {
	hub    *Hub
	local  netAddr
	lost   func(from raft.ServerID) // called when an accepted connection ended
	serve  func(net.Conn, Identity) // reads the messages of an accepted connection
	also   func(id raft.ServerID) []string
	stall  time.Duration // limit of the incoming streams
	ctx    context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]struct{}

	stalled map[string]time.Time // when a request to a server last got stuck
}

type netAddr string

func (netAddr) Network() string  { return "raft" }
func (a netAddr) String() string { return string(a) }

func newStreams(hub *Hub, local string, stall time.Duration, also func(raft.ServerID) []string, lost func(raft.ServerID), serve func(net.Conn, Identity)) *streams {
	s := &streams{hub: hub, local: netAddr(local), lost: lost, serve: serve, also: also, stall: stall,
		conns: make(map[net.Conn]struct{}), stalled: make(map[string]time.Time)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	hub.Handle(Raft, s.take)
	return s
}

// take serves an accepted connection.
func (s *streams) take(conn net.Conn, from Identity) {
	o := &ownedConn{Conn: conn, s: s, ended: func() { s.lost(raft.ServerID(from.ServerID)) }}
	if c := newInConn(o, s.stall, from.Beats); s.register(c) {
		s.serve(c, from)
	}
}

// Accept never returns a connection to raft.NetworkTransport, because its decoder trusts
// its input. We read the incoming messages in serve instead.
func (s *streams) Accept() (net.Conn, error) {
	<-s.ctx.Done()
	return nil, net.ErrClosed
}

// dial opens a stream on which requests must make progress within limit.
func (s *streams) dial(t raft.ServerAddress, timeout, limit time.Duration) (net.Conn, error) {
	id, addr, err := splitTarget(t)
	if err != nil {
		return nil, err
	}
	if s.stalledSince(id, time.Now().Add(-handshakeTimeout)) {
		timeout = min(timeout, 2*limit) // the path may drop the handshake, too
	}
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	conn, err := s.dialAny(ctx, id, addr)
	if err != nil {
		return nil, err
	}
	if c := newOutConn(&ownedConn{Conn: conn, s: s}, id, limit); s.register(c) {
		return &answerConn{Conn: c}, nil
	}
	return nil, net.ErrClosed
}

// abandon closes the idle connections to a server on which nothing has come in since a
// request got stuck on another connection: the path has most likely broken them all.
func (s *streams) abandon(to string, since time.Time) {
	s.mu.Lock()
	s.stalled[to] = time.Now()
	s.mu.Unlock()
	s.closeOut(func(c *outConn) bool {
		return c.to == to && !c.open.Load() && time.Unix(0, c.heard.Load()).Before(since)
	})
}

// stalledSince reports whether a request to a server got stuck after t. We can't use the
// error, because Raft's decoder converts it to text.
func (s *streams) stalledSince(to string, t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stalled[to].After(t)
}

// hangUp closes all outgoing connections of this server.
func (s *streams) hangUp() { s.closeOut(func(*outConn) bool { return true }) }

func (s *streams) closeOut(match func(c *outConn) bool) {
	s.mu.Lock()
	var hit []*outConn
	for conn := range s.conns {
		if c, ok := conn.(*outConn); ok && match(c) {
			hit = append(hit, c)
		}
	}
	s.mu.Unlock()
	for _, c := range hit {
		_ = c.Close()
	}
}

// streamLayer is the raft.StreamLayer for one kind of request: those of Raft's main streams, or
// heartbeats and the like, which are answered immediately and have a shorter limit.
type streamLayer struct {
	*streams
	limit time.Duration
}

// Close implements raft.StreamLayer. It closes nothing: the layers share their streams, and
// a raft.NetworkTransport would report an error of Accept before it is closed itself.
func (streamLayer) Close() error { return nil }

// Dial implements raft.StreamLayer.
func (l streamLayer) Dial(t raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return l.dial(t, timeout, l.limit)
}

// dialAny tries the address in Raft's configuration and, if the server isn't there, the
// addresses it may have moved to.
func (s *streams) dialAny(ctx context.Context, id, addr string) (net.Conn, error) {
	all := []string{addr}
	if s.also != nil {
		all = Addresses(addr, s.also(raft.ServerID(id)))
	}
	return DialAny(ctx, s.hub, Raft, all, id)
}

func (s *streams) Addr() net.Addr { return s.local }

func (s *streams) Close() error {
	s.cancel()
	s.mu.Lock()
	var open []net.Conn
	for c := range s.conns {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
	return nil
}

// register adds a connection so that Close closes it. After Close, register closes it
// immediately and returns false.
func (s *streams) register(c net.Conn) bool {
	s.mu.Lock()
	if s.ctx.Err() == nil {
		s.conns[c] = struct{}{}
		s.mu.Unlock()
		return true
	}
	s.mu.Unlock()
	_ = c.Close()
	return false
}

type ownedConn struct {
	net.Conn
	s       *streams
	once    sync.Once
	ended   func() // nil: no callback
	closing func()
}

// close closes the connection that c is the inner part of.
func (c *ownedConn) close(outer net.Conn) error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.closing()
		c.s.mu.Lock()
		delete(c.s.conns, outer)
		c.s.mu.Unlock()
		if c.ended != nil && c.s.ctx.Err() == nil {
			c.ended()
		}
	})
	return err
}

// Close implements net.Conn.
func (c *outConn) Close() error { return c.close(c) }

// Close implements net.Conn.
func (c *inConn) Close() error { return c.close(c) }
