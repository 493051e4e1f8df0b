package server

import (
	"crypto/rand"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// Read-only mode: a server that has lost its ensemble answers the reads of
// clients that asked for it. Their sessions are this server's own, live only as
// long as it stays in that mode, and appear in no log.

// readOnlyAfter is how long a server is without an ensemble before it says so.
const readOnlyAfter = 2 * time.Second

// enterReadOnly changes to read-only mode when it is time, and sends everybody
// else away.
func (s *Server) enterReadOnly() {
	if !s.cfg.ReadOnlyMode || !s.cfg.distributed() {
		return
	}
	due := false
	s.changeMode(func(m *modes) {
		due = m.now == notServing && s.cfg.Now().Sub(m.since) >= max(readOnlyAfter, s.cfg.TickTime)
		if due {
			m.set(readOnly)
		}
	})
	if due {
		s.leaveToOthers()
	}
}

// ForceReadOnly puts the server into read-only mode as if it had lost its
// ensemble, also one that stands alone, or ends that. It is for tests.
func (s *Server) ForceReadOnly(on bool) {
	s.changeMode(func(m *modes) {
		if m.forced && !on {
			m.since = s.cfg.Now()
			m.set(notServing) // until what the ensemble says is looked at
		}
		m.forced = on
	})
	if on {
		s.leaveToOthers()
	}
}

// leaveToOthers sends the clients with a session of the ensemble away.
func (s *Server) leaveToOthers() {
	s.eachConn(func(c *conn) {
		c.mu.Lock()
		global := c.sid != 0 && !c.local
		c.mu.Unlock()
		if global {
			c.kill()
		}
	})
}

// localSessions begins the ids of local sessions. No session of the ensemble has
// one like it, whatever the number of its server (session.Table).
const localSessions = -1 << 56

// attachLocal gives a read-only client a session. One of the ensemble cannot be
// taken up: its client is to look for a server that knows.
func (c *conn) attachLocal(req *proto.ConnectRequest, timeout time.Duration) bool {
	s := c.s
	ms := int32(timeout / time.Millisecond)
	s.mu.Lock()
	pw, known := s.locals[req.SessionID]
	switch {
	case req.SessionID == 0:
		s.forgetLocal()
		s.lastLocal++
		req.SessionID = localSessions | s.lastLocal
		rand.Read(pw[:])
		s.locals[req.SessionID] = pw
	case !known || string(pw[:]) != string(req.Passwd):
		s.mu.Unlock()
		return false
	}
	s.sessions[req.SessionID] = c
	s.mu.Unlock()
	c.mu.Lock()
	c.local, c.sid, c.timeout = true, req.SessionID, ms
	c.mu.Unlock()
	if m, _ := s.modes.get(); m != readOnly {
		return false // whoever changed that may have missed this connection
	}
	w := s.getWork(c)
	w.replies = s.bufs.get(smallBuffer)
	w.replies.b = appendConnect(w.replies.b, proto.ConnectResponse{
		TimeOut: ms, SessionID: req.SessionID, Passwd: pw[:], ReadOnly: true, HasReadOnly: req.HasReadOnly})
	w.done++
	return true
}

// maxLocals is how many sessions a server in read-only mode remembers. Those that their
// clients do not close are forgotten when there are more.
const maxLocals = 10_000

// forgetLocal makes room for another local session; s.mu is held.
func (s *Server) forgetLocal() {
	if len(s.locals) < maxLocals {
		return
	}
	for sid := range s.locals {
		if s.sessions[sid] == nil {
			delete(s.locals, sid)
			return
		}
	}
}

// refuseReadOnly answers a client that wants to begin a session of read-only mode,
// which takes local sessions. It gets the header that ZooKeeper sends then, which
// its client takes for the end of the session.
func (c *conn) refuseReadOnly() bool {
	s := c.s
	s.stats.readOnlyRefused.Add(1)
	c.complain("refusing to begin a session in read-only mode: that takes localSessionsEnabled=true")
	w := s.getWork(c)
	c.turnAway(w, proto.RequestHeader{}, proto.ErrNotReadOnly)
	w.done++
	c.flush()
	return true
}

// endLocal ends a session of read-only mode, as its client asks for.
func (s *Server) endLocal(sid int64) {
	s.mu.Lock()
	delete(s.locals, sid)
	s.mu.Unlock()
}
