package server

import (
	"time"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/proto"
)

// Read-only mode: a server that has lost its ensemble answers the reads of clients that
// asked for it. Their sessions belong to this server alone, live only as long as it
// stays in that mode, and appear in no log.

// readOnlyAfter is how long a server must be without an ensemble before it enters
// read-only mode.
const readOnlyAfter = 2 * time.Second

// enterReadOnly enters read-only mode when it is due, and closes the clients that have
// a session of the ensemble.
func (m *modes) enterReadOnly() {
	s := m.s
	if !s.cfg.ReadOnlyMode || !s.cfg.distributed() {
		return
	}
	due := false
	m.update(func(m *modes) {
		due = m.now == notServing && s.cfg.Env.Now().Sub(m.since) >= max(readOnlyAfter, s.cfg.TickTime)
		if due {
			m.set(readOnly)
		}
	})
	if due {
		m.leaveToOthers()
	}
}

// ForceReadOnly puts the server into read-only mode as if it had lost its ensemble, or
// ends that. It works on a standalone server too. It is for tests.
func (s *Server) ForceReadOnly(on bool) {
	s.modes.update(func(m *modes) {
		if m.forced && !on {
			m.since = s.cfg.Env.Now()
			m.set(notServing) // until the ensemble's state is evaluated
		}
		m.forced = on
	})
	if on {
		s.modes.leaveToOthers()
	}
}

// leaveToOthers closes the clients that have a session of the ensemble.
func (m *modes) leaveToOthers() {
	m.s.clients.each(func(c *conn) {
		c.replies.mu.Lock()
		global := c.session.id != 0 && !c.session.local
		c.replies.mu.Unlock()
		if global {
			c.kill()
		}
	})
}

// localSessions is the prefix of local session ids. No session of the ensemble has such
// an id, whatever its server's number (session.Table).
const localSessions = -1 << 56

// attachLocal gives a session to a read-only client. It can't resume a session of the
// ensemble: such a client should look for a server in touch with the ensemble.
func (c *conn) attachLocal(req *proto.ConnectRequest, timeout time.Duration) bool {
	s := c.s
	ms := int32(timeout / time.Millisecond)
	pw, ok := s.clients.attachLocal(req, c)
	if !ok {
		return false
	}
	c.replies.mu.Lock()
	c.session.local, c.session.id, c.session.timeout = true, req.SessionID, ms
	c.replies.mu.Unlock()
	if m, _ := s.modes.get(); m != readOnly {
		return false // the change of mode may have missed this connection
	}
	w := c.reader.getWork()
	w.replies = s.pools.Get(buffer.Small)
	w.replies.B = appendConnect(w.replies.B, proto.ConnectResponse{
		TimeOut: ms, SessionID: req.SessionID, Passwd: pw[:], ReadOnly: true, HasReadOnly: req.HasReadOnly})
	w.done++
	return true
}

// refuseReadOnly answers a client that wants to begin a session in read-only mode
// without local sessions. It sends the header that ZooKeeper sends in this case, which
// ZooKeeper's client takes for the end of the session.
func (c *conn) refuseReadOnly() bool {
	s := c.s
	s.stats.ReadOnlyRefused.Add(1)
	c.complain("refusing to begin a session in read-only mode: that takes localSessionsEnabled=true")
	w := c.reader.getWork()
	c.turnAway(w, proto.RequestHeader{}, proto.ErrNotReadOnly)
	w.done++
	c.replies.flush()
	return true
}
