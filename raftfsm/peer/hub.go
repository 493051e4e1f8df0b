package peer

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
	handshakeTimeout = 5 * time.Second
	// maxHandshakes bounds the connections that have not yet said who they
	// are: each costs a goroutine and a few hundred bytes.
	maxHandshakes = 256
	// refusalPause keeps a peer that tries for ever from filling the log.
	refusalPause = 30 * time.Second
)

// Acceptor takes over a connection after its handshake. It runs on the
// connection's own goroutine and has to close it.
type Acceptor func(conn net.Conn, from Identity)

// Hub owns the quorum port of a server and every connection that passes it.
//
// Invariant: no byte of a stream is read or written before both sides have
// accepted the other's identity.
type Hub struct {
	network Network
	log     *slog.Logger
	ln      net.Listener
	slots   chan struct{} // one per handshake under way
	wg      sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc

	mu        sync.Mutex
	self      Identity
	acceptors [kinds]Acceptor
	conns     map[net.Conn]struct{}
	refusals  map[string]time.Time // last time logged, by text
	closed    bool
}

// Listen opens the quorum port. Streams are refused as not ready until Handle
// was called for their kind.
func Listen(network Network, addr string, self Identity, logger *slog.Logger) (*Hub, error) {
	ln, err := network.Listen(addr)
	if err != nil {
		return nil, fmt.Errorf("quorum port %s: %w", addr, err)
	}
	h := &Hub{network: network, log: logger, ln: ln, self: self,
		slots: make(chan struct{}, maxHandshakes),
		conns: make(map[net.Conn]struct{}), refusals: make(map[string]time.Time)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.wg.Add(1)
	go h.accept()
	return h, nil
}

// Addr is where the hub listens.
func (h *Hub) Addr() net.Addr { return h.ln.Addr() }

// Identity is what this server says about itself.
func (h *Hub) Identity() Identity {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.self
}

// SetIdentity changes it for the handshakes to come.
func (h *Hub) SetIdentity(id Identity) {
	h.mu.Lock()
	h.self = id
	h.mu.Unlock()
}

// Handle gives the streams of a kind to an acceptor; nil refuses them.
func (h *Hub) Handle(kind Kind, a Acceptor) {
	h.mu.Lock()
	h.acceptors[kind] = a
	h.mu.Unlock()
}

// Dial opens a stream to the server known as to at addr. It returns what that
// server says about itself. An error of type *RefusedError is an answer: the
// server is there and does not talk to us.
func (h *Hub) Dial(ctx context.Context, kind Kind, addr, to string) (net.Conn, Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(h.ctx, cancel)
	defer stop()
	raw, err := h.network.Dial(ctx, addr)
	if err != nil {
		return nil, Identity{}, err
	}
	conn, err := h.track(raw)
	if err != nil {
		return nil, Identity{}, err
	}
	interrupt := context.AfterFunc(ctx, func() { _ = conn.Close() })
	theirs, err := h.introduce(conn, kind, addr, to)
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		return nil, theirs, err
	}
	return conn, theirs, nil
}

// introduce is the dialler's half of the handshake.
func (h *Hub) introduce(conn net.Conn, kind Kind, addr, to string) (Identity, error) {
	ours := h.Identity()
	by := time.Now().Add(handshakeTimeout)
	if err := writeHello(conn, &hello{version: version, kind: kind, to: to, from: ours}, by); err != nil {
		return Identity{}, err
	}
	answer, err := readHello(conn, by)
	if err != nil {
		return Identity{}, fmt.Errorf("handshake with server %s at %s: %w", to, addr, err)
	}
	code := answer.code
	switch {
	case answer.version != version:
		code = WrongVersion
	case answer.kind != kind:
		code = wrongAnswer
	case code == Accepted:
		code = judge(kind, ours, answer.from, to, answer.from.ServerID)
	}
	if code != Accepted {
		err := &RefusedError{Kind: kind, Addr: addr, To: to, Code: code, Ours: ours, Theirs: answer.from}
		h.complain(code, err)
		return answer.from, err
	}
	return answer.from, nil
}

func (h *Hub) accept() {
	defer h.wg.Done()
	for {
		raw, err := h.ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || h.ctx.Err() != nil {
				return
			}
			// Out of file descriptors and the like: the port stays open.
			h.log.Error("accept on the quorum port failed", "addr", h.ln.Addr().String(), "err", err)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-h.ctx.Done():
				return
			}
			continue
		}
		select {
		case h.slots <- struct{}{}:
		default:
			_ = raw.Close()
			continue
		}
		conn, err := h.track(raw)
		if err != nil {
			<-h.slots
			return
		}
		h.wg.Add(1)
		go func() {
			defer h.wg.Done()
			h.serve(conn)
		}()
	}
}

// serve is the acceptor's half of the handshake.
func (h *Hub) serve(conn net.Conn) {
	a, from, err := h.receive(conn)
	<-h.slots
	if err != nil {
		h.log.Debug("connection to the quorum port ended in its handshake", "remote", conn.RemoteAddr().String(), "err", err)
		_ = conn.Close()
		return
	}
	a(conn, from)
}

func (h *Hub) receive(conn net.Conn) (Acceptor, Identity, error) {
	by := time.Now().Add(handshakeTimeout)
	in, err := readHello(conn, by)
	if err != nil {
		return nil, Identity{}, err
	}
	h.mu.Lock()
	ours := h.self
	var a Acceptor
	if in.version == version {
		a = h.acceptors[in.kind]
	}
	h.mu.Unlock()
	code := WrongVersion
	if in.version == version {
		code = judge(in.kind, ours, in.from, in.to, ours.ServerID)
		if code == Accepted && a == nil {
			code = NotReady
		}
	}
	answer := hello{version: version, kind: in.kind, code: code, to: in.from.ServerID, from: ours}
	if err := writeHello(conn, &answer, by); err != nil {
		return nil, in.from, err
	}
	if code != Accepted {
		err := &RefusedError{Kind: in.kind, Addr: conn.RemoteAddr().String(), To: in.to, Code: code, Ours: ours, Theirs: in.from}
		h.complain(code, err)
		return nil, in.from, err
	}
	return a, in.from, nil
}

// complain logs a refusal that an operator has to know of, now and then.
func (h *Hub) complain(code Code, err *RefusedError) {
	if code == NotReady {
		return
	}
	// The remote port of an accepted connection differs each time.
	key := fmt.Sprint(err.Kind, code, err.To, err.Theirs.ServerID, err.Theirs.Cluster, err.Theirs.List)
	now := time.Now()
	h.mu.Lock()
	again := now.Sub(h.refusals[key]) < refusalPause
	if !again {
		if len(h.refusals) > maxHandshakes {
			clear(h.refusals)
		}
		h.refusals[key] = now
	}
	h.mu.Unlock()
	if !again {
		h.log.Warn("refused to talk to another server", "err", err.Error())
	}
}

// Close closes the port and every connection that came or went through the
// hub, and waits for the acceptors to return.
func (h *Hub) Close() error {
	h.mu.Lock()
	h.closed = true
	var open []net.Conn
	for c := range h.conns {
		open = append(open, c)
	}
	h.mu.Unlock()
	h.cancel()
	err := h.ln.Close()
	for _, c := range open {
		_ = c.Close()
	}
	h.wg.Wait()
	return err
}

// track makes Close close the connection too.
func (h *Hub) track(raw net.Conn) (net.Conn, error) {
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

type tracked struct {
	net.Conn
	hub *Hub
}

func (c *tracked) Close() error {
	c.hub.mu.Lock()
	delete(c.hub.conns, c)
	c.hub.mu.Unlock()
	return c.Conn.Close()
}
