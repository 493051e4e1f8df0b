package server

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// connecting is what the answer to a handshake needs.
type connecting struct {
	timeout     int32 // negotiated, milliseconds
	hasReadOnly bool  // the client sent the byte, so it gets one
	refused     atomic.Bool
}

// sessionID prints as ZooKeeper's logs and commands do.
type sessionID int64

func (id sessionID) String() string { return fmt.Sprintf("0x%x", uint64(id)) }

// attach proposes a session for c, new or known, and waits until that has been
// applied here: only then is the client told.
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
	c.ended = c.sid == 0 // refused: nothing it sent is looked at
	return true
}

// unproved counts a client that did not get the session which it named.
func (c *conn) unproved(sid int64) {
	c.s.stats.unproved.Add(1)
	c.complain("closing a client: its session has ended, or its password is wrong", "of", sessionID(sid))
}

// sessionExpired tells the client that its session is gone, and closes.
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

// applyAttach gives a session to the connection that asked for it, and ends the
// one that had it: here, or on whichever server this runs.
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
		c.known.Store(p.arrived) // by every leader that gets this far in the log
		c.reported.Store(p.arrived)
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

// own makes c the connection of its session. The tree is locked, so c is not
// leaving at the same time.
func (s *Server) own(c *conn) {
	s.mu.Lock()
	s.sessions[c.sid] = c
	s.lost.remove(c.sid)
	s.mu.Unlock()
}

// displace closes this server's connection of a session, unless it is the one
// that p belongs to.
func (s *Server) displace(sid int64, p *pending) {
	s.mu.Lock()
	c := s.sessions[sid]
	s.mu.Unlock()
	if c != nil && (p == nil || p.c != c) {
		c.kill()
	}
}

// sessionClosed ends the connection of a session that is no more. The one that
// asked for it has been told and closes by itself.
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

// Live implements raftfsm.Handler. A client that we do not read from, or that
// waits for an answer, is alive as far as we can tell.
func (h handler) Live(dst []int64) []int64 {
	touch := h.s.lookAt()
	now := h.s.clock()
	h.s.mu.Lock()
	for sid, c := range h.s.sessions {
		if c.heard.Swap(false) || c.waits() {
			c.report(now, touch)
			dst = append(dst, sid)
		}
	}
	h.s.mu.Unlock()
	if ic := h.s.cfg.Interceptor; ic != nil {
		dst = ic.Live(dst)
	}
	return dst
}
