package quorum

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	handshakeTimeout = 5 * time.Second
	// connectTimeout bounds one attempt to connect, before the handshake. It includes the
	// wait for the lookup of a host name: at most lookupPatience once an address is known.
	// If a lookup takes longer, it continues, and the next attempt uses its result.
	connectTimeout = time.Second
	// refusalPause keeps a peer that retries forever from filling the log.
	refusalPause = 30 * time.Second
)

// Acceptor takes over a connection after its handshake. It runs on the connection's own
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
	replays  replays
	rejected rejections

	mu        sync.Mutex
	ports     []port // the first is the one of Addr
	self      Identity
	acceptors [kinds]Acceptor
	conns     map[net.Conn]struct{}
	crowds    map[crowd][]*tracked
	refusals  map[string]time.Time // last time logged, by text
	// In the period that began at refusalsFrom, refusalLines refusals were logged and
	// unlogged ones left out.
	refusalsFrom           time.Time
	refusalLines, unlogged int
	closed                 bool
}

// Security says how servers authenticate each other. Both fields may be nil. In that case
// all traffic is plaintext, and a server trusts any caller.
type Security struct {
	TLS  *TLS
	SASL *SASL // inside TLS, if TLS is used
}

// Listen opens the quorum port. The hub refuses streams as not ready until Handle has
// been called for their kind.
func Listen(network Network, addr string, self Identity, security Security, logger *slog.Logger) (*Hub, error) {
	ln, err := network.Listen(addr)
	if err != nil {
		return nil, fmt.Errorf("quorum port %s: %w", addr, err)
	}
	h := &Hub{network: network, tls: security.TLS, sasl: security.SASL, log: logger, ports: []port{{addr, ln}}, self: self.named(),
		conns: make(map[net.Conn]struct{}), crowds: make(map[crowd][]*tracked), refusals: make(map[string]time.Time)}
	h.replays = newReplays(h)
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

// Identity returns what this server says about itself.
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

// Dial opens a stream to server to at addr. It returns that server's description of itself.
// An error of type *RefusedError is an answer: the server is running but doesn't talk to
// us.
func (h *Hub) Dial(ctx context.Context, kind Kind, addr, to string) (net.Conn, Identity, error) {
	if h.ctx.Err() != nil {
		return nil, Identity{}, net.ErrClosed // begin no lookup
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(h.ctx, cancel)
	defer stop()
	// We try again soon instead of waiting for the kernel to resend the SYN after ever
	// longer pauses: the path may work again by now.
	connect, stopConnecting := context.WithTimeout(ctx, connectTimeout)
	raw, err := h.network.Dial(connect, addr)
	stopConnecting()
	if err != nil {
		return nil, Identity{}, err
	}
	conn, err := h.track(raw)
	if err != nil {
		return nil, Identity{}, err
	}
	interrupt := context.AfterFunc(ctx, func() { _ = conn.Close() })
	var theirs Identity
	stream, err := h.secure(ctx, conn, addr)
	if err == nil {
		theirs, err = h.introduce(stream, kind, addr, to)
	}
	if !interrupt() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		_ = conn.Close()
		err = h.refusal(err, RefusedError{Kind: kind, Addr: addr, To: to})
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) && !errors.Is(ctx.Err(), context.Canceled) {
			BlamePath(conn)
		}
		return nil, theirs, err
	}
	return stream, theirs, nil
}

// secure is the dialler's half of the steps before the handshake.
func (h *Hub) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	if h.tls == nil || h.tls.DialPlain {
		return conn, nil
	}
	return h.tls.client(ctx, conn, addr)
}

// refusal translates a TLS error into its meaning for the operator, and logs it. It
// returns any other error unchanged.
func (h *Hub) refusal(err error, who RefusedError) error {
	var known *RefusedError
	if h.tls == nil || errors.As(err, &known) {
		return err
	}
	who.Code, who.Cause = h.tls.explain(err)
	if who.Code == Accepted {
		return err
	}
	who.Ours = h.Identity()
	h.complain(&who)
	return &who
}

// introduce is the dialler's half of the handshake.
func (h *Hub) introduce(conn net.Conn, kind Kind, addr, to string) (Identity, error) {
	ours := h.Identity()
	by := time.Now().Add(handshakeTimeout)
	said := hello{version: version, kind: kind, code: beats, to: to, from: ours, challenge: newChallenge()}
	hear := readHello
	if h.sasl != nil && h.sasl.Login {
		said.version = saslVersion
		hear = func(conn net.Conn, by time.Time) (hello, error) { return h.sasl.login(conn, &said, by) }
	}
	if err := writeHello(conn, &said, by); err != nil {
		return Identity{}, err
	}
	answer, err := hear(conn, by)
	var distrusted *saslError
	if err != nil && !errors.As(err, &distrusted) {
		return Identity{}, fmt.Errorf("handshake with server %s at %s: %w", to, addr, err)
	}
	code := h.understood(&said, &answer)
	if distrusted != nil {
		code, answer.from = distrusted.code, Identity{}
	}
	if code == Accepted {
		if code, err = verifyAnswer(conn, ours, &said, &answer, by); err != nil {
			return Identity{}, err
		}
	}
	if code != Accepted {
		err := &RefusedError{Kind: kind, Addr: addr, To: to, Code: code, Ours: ours, Theirs: answer.from}
		h.blame(err, distrusted)
		h.complain(err)
		return answer.from, err
	}
	return answer.from, nil
}

// understood returns the code that results from the answer to a handshake.
func (h *Hub) understood(said, answer *hello) Code {
	switch {
	case answer.version != said.version && said.version == saslVersion && answer.code == WrongVersion:
		return NoSASL // the other server doesn't know SASL
	case answer.version != said.version && answer.code != NeedTLS && answer.code != NeedSASL, !answer.known():
		return WrongVersion
	case answer.kind != said.kind, answer.code == challenged:
		return wrongAnswer
	case answer.code == Accepted:
		return judge(said.kind, said.from, answer.from, said.to, answer.from.ServerID)
	}
	return answer.code
}

// blame adds what this server knows about the reason for a refusal.
func (h *Hub) blame(err *RefusedError, distrusted *saslError) {
	switch {
	case distrusted != nil:
		err.Cause = distrusted
	case err.Code == BadLogin && h.sasl != nil:
		err.Code, err.Cause = LoginRefused, fmt.Errorf("user %.64q", h.sasl.User)
	case err.Code == BadCertificate:
		err.Code, err.Cause = CertificateRefused, errors.New("it is not that of server "+err.Ours.ServerID)
		if h.tls != nil {
			err.Cause = fmt.Errorf("it is not that of server %s: %s", err.Ours.ServerID, h.tls.ours())
		}
	}
}

func (h *Hub) accept(ln net.Listener) {
	defer h.wg.Done()
	var told time.Time
	for {
		raw, err := ln.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || h.ctx.Err() != nil {
				return
			}
			// E.g. out of file descriptors: keep the port open.
			if time.Since(told) >= refusalPause {
				told = time.Now()
				h.log.Error("accept on the quorum port fails: it is tried again", "addr", ln.Addr().String(), "err", err)
			}
			select {
			case <-time.After(100 * time.Millisecond):
			case <-h.ctx.Done():
				return
			}
			continue
		}
		conn, err := h.track(raw)
		if err != nil {
			return
		}
		h.shaking.begin(conn)
		h.wg.Add(1)
		go func() {
			defer h.wg.Done()
			h.serve(conn)
		}()
	}
}

// serve is the acceptor's half of the handshake.
func (h *Hub) serve(conn *tracked) {
	stream, cert, err := h.admit(conn)
	var a Acceptor
	var in *hello
	if err == nil {
		a, in, err = h.receive(stream, cert)
	}
	if err != nil {
		h.log.Debug("connection to the quorum port ended in its handshake", "remote", conn.RemoteAddr().String(), "err", err)
		if refused := (*RefusedError)(nil); errors.As(err, &refused) {
			drain(conn)
		}
		_ = conn.Close()
	}
	h.shaking.end(conn)
	if err == nil {
		h.enter(conn, in.kind, in.from)
		a(stream, in.from)
	}
}

// admit detects whether a caller speaks TLS, and checks whether it may or must. The
// certificate is nil for plaintext.
func (h *Hub) admit(conn net.Conn) (net.Conn, *x509.Certificate, error) {
	by := time.Now().Add(handshakeTimeout)
	detect := by
	if h.tls != nil && h.tls.Detect > 0 {
		detect = time.Now().Add(h.tls.Detect)
	}
	var first [1]byte
	if err := conn.SetReadDeadline(detect); err != nil {
		return nil, nil, err
	}
	if _, err := io.ReadFull(conn, first[:]); err != nil {
		return nil, nil, err
	}
	unread := &unreadConn{Conn: conn, first: first[:]}
	who := RefusedError{Addr: conn.RemoteAddr().String(), Incoming: true}
	switch {
	case first[0] != recordHandshake && (h.tls == nil || h.tls.AcceptPlain):
		return unread, nil, nil
	case first[0] != recordHandshake:
		return nil, nil, h.refusePlain(unread, by, who)
	case h.tls == nil:
		// A TLS client recognizes any plaintext answer as not TLS.
		who.Code = NeedTLS
		h.complain(&who)
		return nil, nil, errors.Join(&who, writeHello(conn, &hello{version: version, kind: Probe, code: NoTLS}, by))
	}
	stream, cert, err := h.tls.server(unread, by)
	if err != nil {
		return nil, nil, h.refusal(err, who)
	}
	return stream, cert, nil
}

// refusePlain tells a server that speaks plaintext that this server requires TLS.
func (h *Hub) refusePlain(conn net.Conn, by time.Time, who RefusedError) error {
	in, err := readHello(conn, by)
	if err != nil {
		return err
	}
	who.Kind, who.Code, who.Theirs = in.kind, NoTLS, in.from
	h.complain(&who)
	// This server identifies itself only to servers that can authenticate.
	return errors.Join(&who, writeHello(conn, &hello{version: version, kind: in.kind, code: NeedTLS}, by))
}

func (h *Hub) receive(conn net.Conn, cert *x509.Certificate) (Acceptor, *hello, error) {
	by := time.Now().Add(handshakeTimeout)
	in, err := readHello(conn, by)
	if err != nil {
		return nil, &in, h.refusal(err, RefusedError{Addr: conn.RemoteAddr().String(), Incoming: true})
	}
	proof, code, cause := []byte(nil), WrongVersion, error(nil)
	if in.known() {
		if proof, code, cause = h.sasl.authenticate(conn, &in, h.Identity(), by); code == Accepted && cause != nil {
			return nil, &in, cause // the connection broke
		}
	}
	// We read it only now, because this server's identity may have changed in the meantime.
	ours, a := h.asOfNow(&in)
	answer := hello{version: in.version, kind: in.kind, code: code, to: in.from.ServerID}
	switch code {
	case Accepted:
		answer.from, answer.challenge = ours, newChallenge()
		if in.from.Nonce != 0 && in.from.Nonce == ours.Nonce {
			answer.code = WrongTarget // this server's own message to another server
		} else if cause = h.tls.mayBe(in.from.ServerID, cert, conn.RemoteAddr()); cause != nil {
			answer.code = BadCertificate
		} else if answer.code = judge(in.kind, ours, in.from, in.to, ours.ServerID); answer.code == Accepted && a == nil {
			answer.code = NotReady
		}
	case WrongVersion:
		answer.version = version
		if h.sasl == nil || !h.sasl.Require {
			answer.from = ours
		}
	default: // this server identifies itself only to servers that can authenticate
		answer.version = saslVersion
	}
	if answer.code == Accepted && provable(ours, &in.from) {
		answer.proof = ours.Cluster.answerProof(&in, &answer)
	}
	said := answer.append(nil)
	if proof != nil {
		said = appendToken(said, proof)
	}
	if answer.code == Accepted {
		return h.conclude(conn, a, ours, &in, &answer, said, by)
	}
	refused := &RefusedError{Kind: in.kind, Addr: conn.RemoteAddr().String(), To: in.to, Code: answer.code.asKnownHere(), Ours: ours,
		Theirs: in.from, Incoming: true, Cause: cause}
	// We log before we answer, so that we have recorded the refusal before the caller's
	// next action.
	h.complain(refused)
	return nil, &in, errors.Join(refused, write(conn, said, by))
}

// conclude accepts a caller: it sends the answer, and verifies that the caller belongs to
// the ensemble it names.
func (h *Hub) conclude(conn net.Conn, a Acceptor, ours Identity, in, answer *hello, said []byte, by time.Time) (Acceptor, *hello, error) {
	if err := write(conn, said, by); err != nil {
		return nil, in, err
	}
	code, err := verifyCaller(conn, ours, in, answer, by)
	if code != Accepted {
		refused := &RefusedError{Kind: in.kind, Addr: conn.RemoteAddr().String(), To: in.to, Code: code, Ours: ours, Theirs: in.from, Incoming: true}
		h.complain(refused)
		return nil, in, refused
	}
	in.from.Beats = in.code == beats
	return a, in, err
}

// asOfNow returns this server's current identity, and the acceptor of the stream that a
// caller asks for.
func (h *Hub) asOfNow(in *hello) (Identity, Acceptor) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !in.known() {
		return h.self, nil
	}
	return h.self, h.acceptors[in.kind]
}

// rejoining reports whether one side means the same server on another disk. This is
// normal for a moment when a server joins with an empty disk: the leader still uses the
// id from its list. If two servers run with the same id, the leader admits only one of
// them and reports it.
func (e *RefusedError) rejoining() bool {
	there := e.Theirs.ServerID
	if e.Incoming {
		there = e.Ours.ServerID
	}
	meant, _, _ := strings.Cut(e.To, ".")
	is, _, _ := strings.Cut(there, ".")
	return e.Code == WrongTarget && e.To != "" && e.To != there && meant == is
}

// complain logs a refusal that an operator should know about, at most once per
// refusalPause.
func (h *Hub) complain(err *RefusedError) {
	if err.Code == NotReady || err.rejoining() {
		return
	}
	// We log one line for all kinds of stream, and ignore the remote port, because it
	// differs for each accepted connection.
	addr := err.Addr
	if host, _, serr := net.SplitHostPort(addr); serr == nil && err.Incoming {
		addr = host
	}
	cause := err.Cause
	if c := (*certificateError)(nil); errors.As(cause, &c) {
		cause = errors.New(describe(c.cert)) // the reason may contain the time
	}
	key := fmt.Sprint(err.Incoming, err.Code, addr, err.To, err.Theirs.ServerID, err.Theirs.Ensemble, err.Theirs.List, cause)
	now := time.Now()
	log, unlogged := h.mayLog(key, now)
	if unlogged > 0 {
		h.log.Warn("refused other calls that are not logged one by one", "count", unlogged, "within", refusalPause)
	}
	if log {
		h.log.Warn("refused to talk to another server", "err", err.Error())
	}
}

// mayLog decides whether a refusal is logged: each kind once in refusalPause, and at most
// maxRefusalLines kinds. The caller chooses much of the kind, so without the second limit a
// stranger could fill the log. It also returns the number of refusals that we left out in
// the period before for that reason.
func (h *Hub) mayLog(key string, now time.Time) (log bool, unlogged int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.refusalsFrom) >= refusalPause {
		unlogged, h.unlogged = h.unlogged, 0
		h.refusalsFrom, h.refusalLines = now, 0
	}
	if now.Sub(h.refusals[key]) < refusalPause {
		return false, unlogged
	}
	if h.refusalLines >= maxRefusalLines {
		h.unlogged++
		return false, unlogged
	}
	if len(h.refusals) > maxHandshakes {
		clear(h.refusals)
	}
	h.refusals[key] = now
	h.refusalLines++
	return true, unlogged
}

// maxRefusalLines is how many refusals are logged in refusalPause.
const maxRefusalLines = 64

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
		r.StopLookUps() // they may outlive the calls that have begun them
	}
	return err
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
