package quorum

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

const (
	// HandshakeTimeout bounds the handshake of a connection, in either role.
	HandshakeTimeout = 5 * time.Second
	// ConnectTimeout bounds one attempt to connect, before the handshake. It includes the
	// lookup of a host name, for which we wait at most lookupPatience once an address is
	// known. A slower lookup continues, and the next attempt uses its result.
	ConnectTimeout = time.Second
)

// Acceptor serves a connection after its handshake. It runs on the connection's own
// goroutine and must close the connection.
type Acceptor func(conn net.Conn, from Identity)

// Hub owns the quorum port of a server and every connection through it.
//
// Invariant: we neither read nor write a byte of a stream before both sides have accepted
// the other's identity, and we act on no claim of another server before it has proved what
// SASL requires.
type Hub struct {
	network  Network
	tls      *TLS  // nil: plaintext
	sasl     *SASL // nil: servers don't have to authenticate
	log      *slog.Logger
	shaking  handshakes
	wg       sync.WaitGroup
	ctx      context.Context
	cancel   context.CancelFunc
	rejected rejections
	refusals refusals

	mu        sync.Mutex
	ports     []port // Addr returns the address of the first port
	self      Identity
	acceptors [kinds]Acceptor
	conns     map[net.Conn]struct{}
	crowds    map[crowd][]*tracked
	closed    bool
}

// Listen opens the quorum port. The hub refuses streams as not ready until Handle has
// been called for their kind.
func Listen(network Network, addr string, self Identity, security Security, logger *slog.Logger) (*Hub, error) {
	ln, err := network.Listen(addr)
	if err != nil {
		return nil, fmt.Errorf("quorum port %s: %w", addr, err)
	}
	h := &Hub{network: network, tls: security.TLS, sasl: security.SASL, log: logger, ports: []port{{addr, ln}}, self: self.named(),
		conns: make(map[net.Conn]struct{}), crowds: make(map[crowd][]*tracked)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.wg.Add(1)
	go h.accept(ln)
	return h, nil
}

// Addr returns the first address that the hub listens on.
func (h *Hub) Addr() net.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ports[0].ln.Addr()
}

// Log returns the log of this server.
func (h *Hub) Log() *slog.Logger { return h.log }

// Identity returns this server's current identity.
func (h *Hub) Identity() Identity {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.self
}

// SetIdentity changes the identity for future handshakes.
func (h *Hub) SetIdentity(id Identity) {
	h.mu.Lock()
	h.self = id.named()
	h.mu.Unlock()
}

// Handle passes the streams of a kind to an acceptor; nil refuses them.
func (h *Hub) Handle(kind Kind, a Acceptor) {
	h.mu.Lock()
	h.acceptors[kind] = a
	h.mu.Unlock()
}

// Close closes the port and all connections of the hub, waits for the acceptors to return,
// and ends the network's lookups of host names.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	ports := h.ports
	var open []net.Conn
	for c := range h.conns {
		open = append(open, c)
	}
	h.mu.Unlock()
	h.cancel()
	var err error
	for _, p := range ports {
		err = errors.Join(err, p.ln.Close())
	}
	for _, c := range open {
		_ = c.Close()
	}
	h.wg.Wait()
	if r := resolvingOf(h.network); r != nil {
		r.StopLookUps() // lookups may outlive the calls that started them
	}
	return err
}

// Go runs f on a goroutine that Close waits for. ctx ends when Close is called. After that,
// Go does nothing.
func (h *Hub) Go(f func(ctx context.Context)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.wg.Go(func() { f(h.ctx) })
	}
}

// track registers a connection so that Close closes it.
func (h *Hub) track(raw net.Conn) (*tracked, error) {
	c := &tracked{Conn: raw, hub: h}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = raw.Close()
		return nil, net.ErrClosed
	}
	h.conns[c] = struct{}{}
	return c, nil
}
