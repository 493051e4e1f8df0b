package server

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/zkgo/zkgo/raftfsm"
)

// mode says whom a server answers.
type mode uint8

const (
	notServing mode = iota // nobody
	readOnly               // clients that asked for it, without an ensemble
	serving                // everybody
)

// modes is the current mode, and the news of changes.
type modes struct {
	mu      sync.Mutex
	now     mode
	status  raftfsm.Status
	touch   bool          // the state is not too old to be read
	forced  bool          // read-only mode, whatever the ensemble says
	changed chan struct{} // closed by the next change
	since   time.Time     // of notServing
	role    time.Time     // since when status.Role
	down    time.Time     // since when nobody is served, by the machine's clock; zero while somebody is
	ready   chan struct{} // closed by the first serving
	isReady bool
}

// StateChanged implements raftfsm.Handler.
func (h handler) StateChanged(st raftfsm.Status) {
	h.s.changeMode(func(m *modes) {
		h.s.roleChanged(m, st.Role)
		// A Node that begins to serve has just found its state fresh. What was found
		// while there was no ensemble is out of date.
		m.touch = m.touch || st.Serving && !m.status.Serving
		m.status = st
	})
}

// changeMode draws the conclusions from what change changes.
func (s *Server) changeMode(change func(*modes)) {
	m := &s.modes
	m.mu.Lock()
	was, before := m.now, m.status
	change(m)
	mute := s.cfg.LeaderNoClients && m.status.Role == raftfsm.Leader
	switch {
	case m.forced:
		m.set(readOnly)
	case m.status.Serving && m.touch && !mute:
		s.countOutage(m)
		m.set(serving)
	case m.now == serving:
		m.since, m.down = s.cfg.Now(), time.Now()
		m.set(notServing)
	}
	now, st := m.now, m.status
	if (now == serving || mute && st.Serving) && !m.isReady {
		m.isReady = true
		close(m.ready)
	}
	m.mu.Unlock()
	if mute && was == serving {
		s.eachConn((*conn).kill) // they find a server that does not lead
	}
	if now == serving {
		s.membersChanged() // perhaps while this server was down
	}
	if was == now && (now != serving || before.Role == st.Role && before.Leader == st.Leader && before.Epoch == st.Epoch) {
		return
	}
	level := slog.LevelInfo
	if was == serving && now != serving && !s.stopping() {
		level = slog.LevelWarn // its clients have lost this server
	}
	s.log.Log(context.Background(), level, "server state changed", "serving", now == serving, "role", modeName(now, st.Role), "leader", leaderWord(&st), "epoch", st.Epoch, "reason", st.Reason)
	if was == readOnly && now != readOnly {
		s.eachConn(func(c *conn) {
			if c.isLocal() {
				c.kill()
			}
		})
		s.mu.Lock()
		clear(s.locals) // they end with the mode that gave them out
		s.mu.Unlock()
	}
}

// leaderWord is the leader's id for the log: every number is that of a server.
func leaderWord(st *raftfsm.Status) any {
	if st.Role == raftfsm.Looking {
		return "none"
	}
	return st.Leader
}

// isLocal reports whether c's session is this server's own.
func (c *conn) isLocal() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local
}

// set changes the mode; m.mu is held.
func (m *modes) set(to mode) {
	if m.now == to {
		return
	}
	m.now = to
	close(m.changed)
	m.changed = make(chan struct{})
}

// get returns the mode and a channel that is closed when it changes.
func (m *modes) get() (mode, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now, m.changed
}

// whyNot says in words why the server does not answer everybody in mode now.
func (s *Server) whyNot(now mode) string {
	m := &s.modes
	m.mu.Lock()
	defer m.mu.Unlock()
	switch st := &m.status; {
	case m.forced:
		return "it is read-only until it is told otherwise"
	case s.cfg.LeaderNoClients && st.Role == raftfsm.Leader:
		return "it leads, and leaderServes=no"
	case st.Serving && !m.touch:
		return "its state is too old to be read: it is out of touch with the ensemble, or lags behind it"
	case st.Reason != "":
		return st.Reason
	case now == readOnly:
		return "there is no ensemble"
	}
	return "it looks for a leader"
}

const (
	// electionHold is how long a server that has just stopped serving, or has just
	// been started, keeps a client that connects: as long as an election takes in
	// which no server has to be waited for.
	electionHold = 500 * time.Millisecond
	// confirmHold is how long a client that connects waits for its session where
	// nothing from a leader with a quorum has come since it connected.
	confirmHold = time.Second
)

// holds is how long a client with that timeout, which connects to a server that
// does not serve, waits for it: the rest of the first moments after the service
// was lost, for then the election may be over soon. Later it is sent away at once:
// it needs its time for finding another server. Where there is no other server, or
// for read-only mode, it waits for a third of its timeout.
func (s *Server) holds(timeout time.Duration, readOnlyOK bool) time.Duration {
	if !s.gated || readOnlyOK && s.cfg.ReadOnlyMode || s.node.Electing() {
		return timeout / 3
	}
	s.modes.mu.Lock()
	defer s.modes.mu.Unlock()
	return min(timeout/3, electionHold-time.Since(s.modes.down))
}

// awaitMode waits until the client can be served, and no longer than holds says.
func (s *Server) awaitMode(timeout time.Duration, readOnlyOK bool) mode {
	m, changed := s.modes.get()
	if m == serving || m == readOnly {
		return m
	}
	limit := s.holds(timeout, readOnlyOK)
	if limit <= 0 {
		return notServing
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-changed:
		case <-timer.C:
			return notServing
		case <-s.done:
			return notServing
		}
		if m, changed = s.modes.get(); m == serving || m == readOnly {
			return m
		}
	}
}
