package server

import (
	"errors"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// open takes a new connection up to its first request. It returns false when the
// connection ends, because it was a four-letter word or was refused.
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

// handshake reads the connect request and answers it. It handles the requests that the
// client sent with it before reading more.
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
		c.complain("closing a client: too many sessions are being begun (zookeeper.connection_throttle_tokens)")
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
		c.complain("closing a client that has seen a later state: this server lags behind, or its data were replaced by older ones",
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
		if req.SessionID == 0 && !s.cfg.LocalSessions {
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
