package peer

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// target packs the two things a dialler needs into the one string that
// raft.NetworkTransport hands to its stream layer and keys its pool with.
func target(id raft.ServerID, addr raft.ServerAddress) raft.ServerAddress {
	return raft.ServerAddress(string(id) + "@" + string(addr))
}

func splitTarget(t raft.ServerAddress) (id, addr string, err error) {
	id, addr, ok := strings.Cut(string(t), "@")
	if !ok {
		return "", "", fmt.Errorf("peer: no server id in target %q", t)
	}
	return id, addr, nil
}

// streams is the raft.StreamLayer over a hub. A hub outlives the Raft instance
// that uses it; Close ends only what belongs to that instance.
type streams struct {
	hub      *Hub
	local    netAddr
	incoming chan net.Conn
	lost     func(from raft.ServerID) // an accepted connection ended
	also     func(id raft.ServerID) []string
	ctx      context.Context
	cancel   context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

type netAddr string

func (netAddr) Network() string  { return "raft" }
func (a netAddr) String() string { return string(a) }

func newStreams(hub *Hub, local string, also func(raft.ServerID) []string, lost func(raft.ServerID)) *streams {
	s := &streams{hub: hub, local: netAddr(local), incoming: make(chan net.Conn), lost: lost, also: also,
		conns: make(map[net.Conn]struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	hub.Handle(Raft, s.take)
	return s
}

// take hands a connection to raft.NetworkTransport, whose goroutine reads it.
func (s *streams) take(conn net.Conn, from Identity) {
	c := s.own(conn, func() { s.lost(raft.ServerID(from.ServerID)) })
	if c == nil {
		return
	}
	select {
	case s.incoming <- c:
	case <-s.ctx.Done():
		_ = c.Close()
	}
}

func (s *streams) Accept() (net.Conn, error) {
	select {
	case c := <-s.incoming:
		return c, nil
	case <-s.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (s *streams) Dial(t raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	id, addr, err := splitTarget(t)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, timeout)
	defer cancel()
	conn, err := s.dialAny(ctx, id, addr)
	if err != nil {
		return nil, err
	}
	if c := s.own(conn, nil); c != nil {
		return c, nil
	}
	return nil, net.ErrClosed
}

// dialAny tries the address in Raft's configuration and, when the server is
// not there, those that it may have moved to.
func (s *streams) dialAny(ctx context.Context, id, addr string) (net.Conn, error) {
	conn, _, err := s.hub.Dial(ctx, Raft, addr, id)
	if err == nil || s.also == nil {
		return conn, err
	}
	for _, other := range s.also(raft.ServerID(id)) {
		if other == addr {
			continue
		}
		if conn, _, oerr := s.hub.Dial(ctx, Raft, other, id); oerr == nil {
			return conn, nil
		}
	}
	return nil, err
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

// own makes Close close conn; nil after Close.
func (s *streams) own(conn net.Conn, ended func()) net.Conn {
	c := &ownedConn{Conn: conn, s: s, ended: ended}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		_ = conn.Close()
		return nil
	}
	s.conns[c] = struct{}{}
	return c
}

type ownedConn struct {
	net.Conn
	s     *streams
	once  sync.Once
	ended func()
}

func (c *ownedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.s.mu.Lock()
		delete(c.s.conns, c)
		c.s.mu.Unlock()
		if c.ended != nil && c.s.ctx.Err() == nil {
			c.ended()
		}
	})
	return err
}
