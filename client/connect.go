package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// The backoff between rounds of connection attempts.
const (
	reconnectBase = 20 * time.Millisecond
	reconnectMax  = time.Second
)

// leastConnectTime is the minimum time limit for connecting to one server.
const leastConnectTime = time.Second

// connector finds a server and opens or resumes the session there.
//
// Invariants:
//   - One goroutine connects (run). Only it uses hosts.
//   - We end a session on the server if no link adopts it: otherwise its ephemeral znodes
//     would stay until it times out.
type connector struct {
	*core
	hosts   *hosts
	servers []string // newest list from /zookeeper/config, if any
}

// run connects and reconnects until the Client ends.
func (c *connector) run() {
	pause := newBackoff(reconnectBase, reconnectMax)
	for c.ctx.Err() == nil {
		l, last, err := c.connect()
		if err != nil {
			c.mu.Lock()
			if c.ctx.Err() == nil {
				c.failures.newest = err
			}
			over := c.end.err != nil && !c.end.closing
			c.mu.Unlock()
			c.log.Info("connect failed", "cause", err)
			if over {
				return
			}
			if last {
				c.tellFailures()
				pause.sleep(c.ctx)
			}
			continue
		}
		<-l.done
		l.wg.Wait()
		c.disconnected(l)
		if time.Since(l.times.began) > reconnectMax {
			pause.reset()
		} else {
			pause.sleep(c.ctx)
		}
	}
}

// connect tries one server. last reports that it was the last one of this round.
func (c *connector) connect() (l *link, last bool, err error) {
	c.mu.Lock()
	if c.servers != nil {
		c.hosts.names, c.servers = c.servers, nil
	}
	first := c.hosts.first()
	limit := max(c.cfg.timeout/time.Duration(c.hosts.size()), leastConnectTime)
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.ctx, limit)
	defer cancel()
	c.attempting(target{name: first}, stepLookUp)
	t, last, err := c.hosts.next(ctx)
	c.attempted(c.hosts.takeUnresolved()...)
	if err != nil {
		return nil, true, err
	}
	l, err = c.try(ctx, t)
	if err != nil {
		failure := ConnectFailure{Server: t.name, Addr: t.addr, Err: c.late(ctx, err)}
		c.attempted(failure)
		return nil, last, failure
	}
	c.attempted()
	return l, last, nil
}

// try connects to one address.
func (c *connector) try(ctx context.Context, t target) (l *link, err error) {
	c.attempting(t, stepDial)
	conn, err := c.dial(ctx, t)
	if err != nil {
		return nil, err
	}
	c.attempting(t, stepGreet)
	// When ctx ends, we close the connection, which ends the handshake at any step.
	unhook := context.AfterFunc(ctx, func() { _ = conn.Close() })
	g, err := c.handshake(ctx, conn, t)
	if !unhook() && err == nil {
		err = errTooLate
	}
	if err == nil {
		if l, err = c.adopt(g, t); err != nil {
			g.giveUp()
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return l, nil
}

// errTooLate is the error of a handshake that exceeds its time limit.
var errTooLate = errors.New("no answer in time")

// dial opens a connection, with TLS if it is configured.
func (c *connector) dial(ctx context.Context, t target) (net.Conn, error) {
	dial := c.cfg.dialer
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, "tcp", t.addr)
	if err != nil || c.cfg.tls == nil {
		return conn, err
	}
	cfg := c.cfg.tls
	if cfg.ServerName == "" && !cfg.InsecureSkipVerify {
		cfg = cfg.Clone()
		cfg.ServerName, _, _ = net.SplitHostPort(t.name)
	}
	c.attempting(t, stepTLS)
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrTLSHandshake, err)
	}
	return secure, nil
}

// handshake opens or resumes the session and authenticates the client.
func (c *connector) handshake(ctx context.Context, conn net.Conn, t target) (*greeting, error) {
	c.mu.Lock()
	old, zxid := c.session.Session, c.session.zxid
	auths := c.auths
	c.mu.Unlock()
	began := time.Now()
	q := proto.ConnectRequest{
		LastZxidSeen: zxid, TimeOut: int32(c.cfg.timeout.Milliseconds()), SessionID: old.ID,
		Passwd: old.Password, ReadOnly: c.cfg.readOnly, HasReadOnly: true,
	}
	if q.Passwd == nil {
		q.Passwd = make([]byte, proto.PasswordSize)
	}
	h := &greeting{conn: conn, frames: newFrameReader(conn, c.cfg.maxReply), old: old.ID, began: began}
	a, err := h.connect(&q)
	if err != nil {
		return nil, handshakeError(ctx, err)
	}
	if a.TimeOut <= 0 {
		return nil, c.refused(old)
	}
	if old.ID != 0 && a.SessionID != old.ID {
		return nil, fmt.Errorf("%w: asked for session %s it answered %s", ErrProtocol, sessionText(old.ID), sessionText(a.SessionID))
	}
	if a.SessionID == 0 {
		return nil, fmt.Errorf("%w: a session with the id 0", ErrProtocol)
	}
	if err := c.authenticate(h, auths, t); err != nil {
		return nil, handshakeError(ctx, err)
	}
	h.session = Session{ID: a.SessionID, Password: a.Passwd, Timeout: time.Duration(a.TimeOut) * time.Millisecond}
	h.readOnly = a.ReadOnly
	return h, nil
}

// handshakeError returns errTooLate if ctx has ended, because in that case we closed conn
// ourselves and caused err.
func handshakeError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errTooLate
	}
	return err
}

// refused handles a reply that reports the end of the session.
func (c *connector) refused(old Session) error {
	if old.ID == 0 {
		return fmt.Errorf("%w: the server did not grant a session", ErrProtocol)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session.ID == old.ID {
		c.lose(errors.New("reported by a server"))
	}
	return ErrSessionExpired
}

// adopt turns a connection into a link, unless the session ended in the meantime.
func (c *connector) adopt(h *greeting, t target) (*link, error) {
	now := time.Now()
	l := &link{
		core: c.core, conn: h.conn, target: t, session: h.session.ID, readOnly: h.readOnly, fresh: h.old == 0,
		out: output{wake: make(chan struct{}, 1)}, done: make(chan struct{}),
		times: times{sent: now, received: now, began: now},
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.end.err != nil:
		return nil, c.end.err
	case c.session.ID != h.old:
		return nil, ErrSessionExpired
	}
	c.session.Session = h.session
	c.session.contacted = h.began
	if !h.readOnly {
		c.session.confirmed = h.began
	}
	if !now.Before(c.session.deadline()) {
		c.lose(errors.New("the handshake took longer than the session's timeout"))
		return nil, ErrSessionExpired
	}
	c.connected(l)
	l.wg.Add(2)
	go l.write()
	go l.read(h.frames)
	if h.readOnly {
		names := slices.Clone(c.hosts.names)
		c.wg.Go(func() { c.seekQuorum(l, names) })
	}
	return l, nil
}

// connected makes l, which has a session, the current link. The caller holds c.mu.
func (c *connector) connected(l *link) {
	state := StateReconnected
	if !c.session.began || c.states.last.State == StateLost || c.states.last.State == StateReadOnly || l.fresh {
		state = StateConnected
	}
	if l.readOnly {
		state = StateReadOnly
	} else {
		c.session.began = true
	}
	c.watches.rewatch(l, c.session.zxid)
	c.link = l
	c.failures.newest, c.failures.list = nil, nil
	c.log.Info("connected", "server", l.addr, "session", sessionText(c.session.ID), "state", state.String())
	c.states.publish(StateChange{State: state, Session: c.session.ID})
	c.poke()
}

// disconnected fails everything that was pending on a link.
func (c *connector) disconnected(l *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.link = nil
	c.failures.newest = l.err
	if !c.end.closing && l.err != nil {
		c.failures.add(ConnectFailure{Server: l.name, Addr: l.addr, Err: fmt.Errorf("the connection was lost: %w", l.err)})
	}
	code := ErrConnectionLoss
	if c.session.ID != l.session {
		code = ErrSessionExpired
	}
	for {
		k, ok := l.requests.pending.pop()
		if !ok {
			break
		}
		if k.abandoned {
			c.free(k)
			continue
		}
		k.taken = true
		k.err = &brokenError{code: code, cause: l.err, sent: k.seq <= l.requests.sent}
		k.ready <- struct{}{}
	}
	for {
		a, ok := l.requests.auths.pop()
		if !ok {
			break
		}
		a.ready <- ErrConnectionLoss
	}
	c.watches.disconnected()
	c.hosts.last = l.addr
	c.hosts.restart()
	if l.readOnly {
		c.session.Session = Session{} // a read-only session exists only on that server
		c.leases.endAll(ErrSessionExpired)
	}
	if c.end.closing || l.session == 0 || c.states.last.State == StateLost {
		return
	}
	c.log.Info("disconnected", "server", l.addr, "cause", l.err)
	c.states.publish(StateChange{State: StateSuspended, Session: l.session, Err: l.err})
}

// greeting is a connection before its link begins.
type greeting struct {
	conn     net.Conn
	frames   *frameReader
	old      int64     // the session to resume; 0: a new one
	began    time.Time // before anything was sent
	session  Session
	readOnly bool
}

// giveUp ends a session that the server has just opened or resumed but that we can't use
// any more, so that its ephemeral znodes disappear immediately.
func (h *greeting) giveUp() {
	if h.conn.SetWriteDeadline(time.Now().Add(leastConnectTime)) != nil {
		return
	}
	_, _ = h.conn.Write(appendRequest(nil, 1, proto.OpCloseSession, nil)) // if this fails, the session times out
}

// connect sends the ConnectRequest and reads the reply.
func (h *greeting) connect(q *proto.ConnectRequest) (a proto.ConnectResponse, err error) {
	if _, err := h.conn.Write(proto.AppendFrame(nil, q.Append(nil))); err != nil {
		return a, err
	}
	frame, err := h.frames.next()
	if stranger := h.frames.stranger(); stranger != nil {
		return a, stranger
	}
	if err != nil {
		return a, fmt.Errorf("no answer to the handshake: %w", err)
	}
	r := proto.NewReader(frame)
	a.Decode(&r)
	if r.Err() != nil {
		return a, fmt.Errorf("%w: the handshake's answer: %w", ErrProtocol, r.Err())
	}
	return a, nil
}

// ask makes one request and waits for its reply. No other request is in flight.
func (h *greeting) ask(xid int32, op proto.Op, body proto.Record) (proto.ReplyHeader, proto.Reader, error) {
	var a proto.ReplyHeader
	if _, err := h.conn.Write(appendRequest(nil, xid, op, body)); err != nil {
		return a, proto.Reader{}, err
	}
	frame, err := h.frames.next()
	if err != nil {
		return a, proto.Reader{}, err
	}
	r := proto.NewReader(frame)
	a.Decode(&r)
	if r.Err() != nil || a.Xid != xid {
		return a, r, fmt.Errorf("%w: the answer to %v", ErrProtocol, op)
	}
	return a, r, nil
}
