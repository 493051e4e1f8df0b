package transport

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

// target packs a server's id and address into the string that raft.NetworkTransport
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

// links are the connections of one Raft instance to and from other servers, over a hub
// that outlives it.
//
// Invariants:
//   - Close leaves no connection open: otherwise a message could reach an instance that no
//     longer runs.
//   - A connection makes progress or ends (progress.go). Its end also closes the idle
//     connections to that server, because the path has most likely dropped them all.
type links struct {
	*instance
	lost  func(from raft.ServerID)        // called when an accepted connection ended
	serve func(net.Conn, quorum.Identity) // reads the messages of an accepted connection

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	stalled map[string]time.Time // when a request to a server last got stuck
}

func newLinks(i *instance) *links {
	return &links{instance: i, conns: make(map[net.Conn]struct{}), stalled: make(map[string]time.Time)}
}

// accept serves an accepted connection.
func (l *links) accept(conn net.Conn, from quorum.Identity) {
	o := &ownedConn{Conn: conn, links: l, ended: func() { l.lost(raft.ServerID(from.ServerID)) }}
	if c := newInConn(o, l.cfg.Stall, from.Beats); l.own(c) {
		l.serve(c, from)
	}
}

// dial opens a stream on which requests must make progress within limit.
func (l *links) dial(t raft.ServerAddress, timeout, limit time.Duration) (net.Conn, error) {
	id, addr, err := splitTarget(t)
	if err != nil {
		return nil, err
	}
	if l.stalledSince(id, time.Now().Add(-quorum.HandshakeTimeout)) {
		timeout = min(timeout, 2*limit) // the path may drop the handshake, too
	}
	ctx, cancel := context.WithTimeout(l.ctx, timeout)
	defer cancel()
	conn, err := l.dialAny(ctx, id, addr)
	if err != nil {
		return nil, err
	}
	if c := newOutConn(&ownedConn{Conn: conn, links: l}, id, limit); l.own(c) {
		return &answerConn{Conn: c}, nil
	}
	return nil, net.ErrClosed
}

// abandon closes the idle connections to a server on which nothing has come in since a
// request got stuck on another connection: the path has most likely dropped them all.
func (l *links) abandon(to string, since time.Time) {
	l.mu.Lock()
	l.stalled[to] = time.Now()
	l.mu.Unlock()
	l.closeAll(func(conn net.Conn) bool {
		c, out := conn.(*outConn)
		return out && c.to == to && !c.open.Load() && time.Unix(0, c.heard.Load()).Before(since)
	})
}

// stalledSince reports whether a request to a server got stuck after t. The error itself
// doesn't show that, because Raft's decoder converts it to text.
func (l *links) stalledSince(to string, t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stalled[to].After(t)
}

// hangUp closes all outgoing connections of this server.
func (l *links) hangUp() {
	l.closeAll(func(c net.Conn) bool {
		_, out := c.(*outConn)
		return out
	})
}

func (l *links) closeAll(match func(net.Conn) bool) {
	l.mu.Lock()
	var hit []net.Conn
	for c := range l.conns {
		if match(c) {
			hit = append(hit, c)
		}
	}
	l.mu.Unlock()
	for _, c := range hit {
		_ = c.Close()
	}
}

// dialAny tries the address in Raft's configuration and, if the server isn't there, the
// addresses it may have moved to.
func (l *links) dialAny(ctx context.Context, id, addr string) (net.Conn, error) {
	all := []string{addr}
	if l.cfg.Elsewhere != nil {
		all = quorum.Addresses(addr, l.cfg.Elsewhere(raft.ServerID(id)))
	}
	return quorum.DialAny(ctx, l.cfg.Hub, quorum.Raft, all, id)
}

// close closes all connections.
func (l *links) close() { l.closeAll(func(net.Conn) bool { return true }) }

// own registers a connection so that Close closes it. After Close, own closes it
// immediately and returns false.
func (l *links) own(c net.Conn) bool {
	l.mu.Lock()
	if !l.closed() {
		l.conns[c] = struct{}{}
		l.mu.Unlock()
		return true
	}
	l.mu.Unlock()
	_ = c.Close()
	return false
}

type ownedConn struct {
	net.Conn
	links   *links
	once    sync.Once
	ended   func() // nil: no callback
	closing func()
}

// close closes the connection that c is the inner part of.
func (c *ownedConn) close(outer net.Conn) error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.closing()
		c.links.mu.Lock()
		delete(c.links.conns, outer)
		c.links.mu.Unlock()
		if c.ended != nil && !c.links.closed() {
			c.ended()
		}
	})
	return err
}

// Close implements net.Conn.
func (c *outConn) Close() error { return c.close(c) }

// Close implements net.Conn.
func (c *inConn) Close() error { return c.close(c) }
