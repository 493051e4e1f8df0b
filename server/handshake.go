package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// open prepares a new connection for its first request. It returns false if the connection
// ends, because the client sent a four-letter word or was refused.
func (c *conn) open() bool {
	if !c.secured() {
		return false
	}
	for len(c.reader.unread()) < proto.LengthSize {
		if c.reader.fill() != nil {
			return false
		}
	}
	c.session.last.Store(c.s.clock())
	if word := string(c.reader.unread()[:proto.LengthSize]); isWord(word) {
		c.answerWord(word)
		return false
	}
	return c.handshake()
}

// handshake reads the connect request and answers it. It handles requests that arrived with
// the connect request before it reads more.
func (c *conn) handshake() bool {
	frame, whole, err := c.reader.next()
	for !whole {
		if errors.Is(err, errFrame) {
			return c.garbled(err)
		}
		if err != nil || c.reader.fill() != nil {
			return false
		}
		frame, whole, err = c.reader.next()
	}
	c.reader.started = c.s.clock()
	c.session.last.Store(c.reader.started)
	c.replies.countReceived(len(frame))
	c.s.stats.Connects.Add(1)
	var req proto.ConnectRequest
	r := proto.NewReader(frame)
	if req.Decode(&r); r.Err() != nil {
		return c.garbled(r.Err())
	}
	if !c.interceptConnect(&req, frame) {
		return false
	}
	c.session.heard.Store(true)
	return c.reader.handle()
}

// connect answers a connect request. It returns false if the connection must be closed
// without an answer.
func (c *conn) connect(req *proto.ConnectRequest) bool {
	s := c.s
	if s.tokens != nil && !s.tokens.Take(s.clock(), req.SessionID != 0) {
		s.stats.Rejected.Add(1)
		c.complain("closing a client: too many new sessions (zookeeper.connection_throttle_tokens)")
		return false
	}
	if s.tokens != nil {
		_, deficit := s.tokens.State()
		s.stats.TokenDeficit.Observe(1, int64(deficit))
	}
	if req.SessionID == 0 && !s.clients.mayBegin(c) {
		return false
	}
	timeout := s.cfg.negotiate(req.TimeOut)
	m := s.modes.await(timeout, req.ReadOnly)
	if m == notServing || m == readOnly && !req.ReadOnly || m == serving && !s.contact.welcomes(timeout) {
		s.stats.TurnedAway.Add(1)
		return false
	}
	if s.lastZxid() < req.LastZxidSeen {
		s.stats.SeenLater.Add(1)
		c.complain("closing a client that has seen a later state: this server lags behind, or its data was replaced by an older state",
			"seen", sessionID(req.LastZxidSeen), "here", sessionID(s.lastZxid()))
		return false
	}
	if req.SessionID != 0 {
		s.stats.Revalidated.Add(1)
		if r := s.node.Status().Role; r == raftfsm.Follower || r == raftfsm.Observer {
			s.stats.Asked.Add(1)
		}
		s.clients.displace(req.SessionID, nil) // even if the password is wrong
	}
	if m == readOnly {
		if req.SessionID == 0 && !s.modes.mayBeginLocal() {
			return c.refuseReadOnly()
		}
		return c.attachLocal(req, timeout)
	}
	return c.attach(req, timeout)
}

// negotiate clamps the timeout that a client requests.
func (c *Config) negotiate(ms int32) time.Duration {
	t := time.Duration(ms) * time.Millisecond
	return max(c.MinSessionTimeout, min(t, c.MaxSessionTimeout))
}

// connecting is the state of a handshake.
type connecting struct {
	timeout     int32 // negotiated, milliseconds
	hasReadOnly bool  // the client sent the byte, so it gets one back
	refused     atomic.Bool
}

// sessionID prints like ZooKeeper's logs and commands.
type sessionID int64

func (id sessionID) String() string { return fmt.Sprintf("0x%x", uint64(id)) }

// attach proposes a session for c, new or existing, and waits until this server has applied
// the command: the client gets its answer after that.
func (c *conn) attach(req *proto.ConnectRequest, timeout time.Duration) bool {
	w := c.reader.getWork()
	p := c.s.pools.newPending(c, proto.OpCreateSession, 0)
	p.inFlight = true
	p.connect = &connecting{timeout: int32(timeout / time.Millisecond), hasReadOnly: req.HasReadOnly}
	w.cmd = raftfsm.Command{
		Kind: raftfsm.KindAttach, Session: req.SessionID,
		Op: proto.OpCreateSession, Timeout: p.connect.timeout, Waiter: p,
	}
	if req.SessionID == 0 {
		rand.Read(w.cmd.Password[:])
	} else if copy(w.cmd.Password[:], req.Passwd) != proto.PasswordSize || len(req.Passwd) != proto.PasswordSize {
		c.unproved(req.SessionID)
		return c.sessionExpired(w, req.HasReadOnly)
	}
	c.replies.mu.Lock()
	c.session.timeout = p.connect.timeout
	c.replies.mu.Unlock()
	asked := p.connect
	answered := c.reader.propose(w, p) && c.replies.awaitAnswers()
	if asked.refused.Load() {
		c.unproved(req.SessionID)
	}
	if !answered {
		return false
	}
	c.reader.ended = c.session.id == 0 // refused: the rest of its input is ignored
	return true
}

// unproved counts a client that asked for a session and didn't get it.
func (c *conn) unproved(sid int64) {
	c.s.stats.Unproved.Add(1)
	c.complain("closing a client: its session has ended, or its password is wrong", "of", sessionID(sid))
}

// sessionExpired tells the client that its session has ended, and closes the
// connection.
func (c *conn) sessionExpired(w *work, hasReadOnly bool) bool {
	w.replies = c.s.pools.Get(buffer.Small)
	w.replies.B = appendConnect(w.replies.B, proto.ConnectResponse{Passwd: make([]byte, proto.PasswordSize), HasReadOnly: hasReadOnly})
	w.done++
	c.endWith()
	c.replies.flush()
	return true
}

// appendConnect appends the answer to a handshake.
func appendConnect(out []byte, resp proto.ConnectResponse) []byte {
	out, mark := proto.BeginFrame(out)
	return proto.EndFrame(resp.Append(out), mark)
}

// applyAttach gives a session to the connection that asked for it, and closes the
// connection that had it. It runs on every server.
func (f *fsm) applyAttach(a *raftfsm.Applied, p *pending) {
	s := f.s
	if a.Code == proto.Ok && a.Attached != nil {
		s.clients.displace(a.Attached.ID, p)
	}
	if p == nil {
		return
	}
	c := p.c
	if a.Code == proto.ErrSessionMoved {
		c.kill() // the session may live: another server, or this one later, knows it
		return
	}
	resp := proto.ConnectResponse{HasReadOnly: p.connect.hasReadOnly}
	if a.Code == proto.Ok && a.Attached != nil {
		at := a.Attached
		resp.SessionID, resp.TimeOut, resp.Passwd = at.ID, p.connect.timeout, at.Password[:]
		c.replies.mu.Lock()
		c.session.id, c.session.gen, c.session.timeout = at.ID, at.Gen, p.connect.timeout
		c.session.signs.Attached(p.arrived)
		c.replies.counters.Last.Op = proto.OpCreateSession
		closed := c.replies.closed
		c.replies.mu.Unlock()
		if !closed {
			s.clients.own(c)
		}
	} else {
		p.connect.refused.Store(true)
		resp.Passwd = make([]byte, proto.PasswordSize)
	}
	f.scratch, f.zxid = appendConnect(f.scratch[:0], resp), a.Zxid
	f.advance(c, p, resp.SessionID == 0)
}

// Live implements raftfsm.Handler. A client that we don't read from, or that waits for
// an answer, counts as alive.
func (h handler) Live(dst []int64) []int64 {
	touch := h.s.contact.refresh()
	dst = h.s.clients.live(dst, h.s.clock(), touch)
	if ic := h.s.cfg.Env.Interceptor; ic != nil {
		dst = ic.Live(dst)
	}
	return dst
}
