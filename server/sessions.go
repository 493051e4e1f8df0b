package server

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// connecting is what answering a handshake needs.
type connecting struct {
	timeout     int32 // negotiated, milliseconds
	hasReadOnly bool  // the client sent the byte, so it gets one back
	refused     atomic.Bool
}

// sessionID prints like ZooKeeper's logs and commands.
type sessionID int64

func (id sessionID) String() string { return fmt.Sprintf("0x%x", uint64(id)) }

// attach proposes a session for c, new or existing, and waits until this server has
// applied it: only then does the client get its answer.
func (c *conn) attach(req *proto.ConnectRequest, timeout time.Duration) bool {
	w := c.s.getWork(c)
	p := c.s.newPending(c, proto.OpCreateSession, 0)
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
	c.mu.Lock()
	c.timeout = p.connect.timeout
	c.mu.Unlock()
	asked := p.connect
	answered := c.propose(w, p) && c.await(func() bool { return c.head == nil })
	if asked.refused.Load() {
		c.unproved(req.SessionID)
	}
	if !answered {
		return false
	}
	c.ended = c.sid == 0 // refused: the rest of its input is ignored
	return true
}

// unproved counts a client that asked for a session and didn't get it.
func (c *conn) unproved(sid int64) {
	c.s.stats.unproved.Add(1)
	c.complain("closing a client: its session has ended, or its password is wrong", "of", sessionID(sid))
}

// sessionExpired tells the client that its session has ended, and closes the
// connection.
func (c *conn) sessionExpired(w *work, hasReadOnly bool) bool {
	w.replies = c.s.bufs.get(smallBuffer)
	w.replies.b = appendConnect(w.replies.b, proto.ConnectResponse{Passwd: make([]byte, proto.PasswordSize), HasReadOnly: hasReadOnly})
	w.done++
	c.endWith()
	c.flush()
	return true
}

// appendConnect appends the answer to a handshake.
func appendConnect(out []byte, resp proto.ConnectResponse) []byte {
	out, mark := proto.BeginFrame(out)
	return proto.EndFrame(resp.Append(out), mark)
}

// applyAttach gives a session to the connection that asked for it, and closes the
// connection that had it. It runs on every server.
func (s *Server) applyAttach(a *raftfsm.Applied, p *pending) {
	if a.Code == proto.Ok && a.Attached != nil {
		s.displace(a.Attached.ID, p)
	}
	if p == nil {
		return
	}
	c := p.c
	resp := proto.ConnectResponse{HasReadOnly: p.connect.hasReadOnly}
	if a.Code == proto.Ok && a.Attached != nil {
		at := a.Attached
		resp.SessionID, resp.TimeOut, resp.Passwd = at.ID, p.connect.timeout, at.Password[:]
		c.mu.Lock()
		c.sid, c.gen, c.timeout = at.ID, at.Gen, p.connect.timeout
		c.signs.Attached(p.arrived)
		c.counters.last.op = proto.OpCreateSession
		closed := c.closed
		c.mu.Unlock()
		if !closed {
			s.own(c)
		}
	} else {
		p.connect.refused.Store(true)
		resp.Passwd = make([]byte, proto.PasswordSize)
	}
	s.fsm.scratch, s.fsm.zxid = appendConnect(s.fsm.scratch[:0], resp), a.Zxid
	s.advance(c, p, resp.SessionID == 0)
}

// own makes c the connection of its session. The tree is locked, so c can't leave at
// the same time.
func (s *Server) own(c *conn) {
	s.mu.Lock()
	s.sessions[c.sid] = c
	s.lost.remove(c.sid)
	s.mu.Unlock()
}

// displace closes this server's connection of a session, unless it is p's.
func (s *Server) displace(sid int64, p *pending) {
	s.mu.Lock()
	c := s.sessions[sid]
	s.mu.Unlock()
	if c != nil && (p == nil || p.c != c) {
		c.kill()
	}
}

// sessionClosed closes the connection of a session that has ended. The connection that
// asked for it gets its answer and closes by itself.
func (s *Server) sessionClosed(sid int64, p *pending) {
	s.mu.Lock()
	c := s.sessions[sid]
	delete(s.sessions, sid)
	s.lost.remove(sid)
	s.mu.Unlock()
	if c != nil && (p == nil || p.c != c) {
		c.kill()
	}
}

// Live implements raftfsm.Handler. A client that we don't read from, or that waits for
// an answer, counts as alive.
func (h handler) Live(dst []int64) []int64 {
	touch := h.s.lookAt()
	now := h.s.clock()
	h.s.mu.Lock()
	for sid, c := range h.s.sessions {
		if c.heard.Swap(false) || c.waits() {
			c.signs.Reported(now, touch)
			dst = append(dst, sid)
		}
	}
	h.s.mu.Unlock()
	if ic := h.s.cfg.Interceptor; ic != nil {
		dst = ic.Live(dst)
	}
	return dst
}
