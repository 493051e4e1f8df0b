package server

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/buffer"
	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// mode is the set of clients that a server answers.
type mode uint8

const (
	notServing mode = iota // none
	readOnly               // clients that asked for it, while there is no ensemble
	serving                // all clients
)

// modes tracks the current mode and signals changes.
type modes struct {
	s *Server

	mu      sync.Mutex
	now     mode
	status  raftfsm.Status
	touch   bool          // the state is fresh enough to be read
	forced  bool          // read-only mode, regardless of the ensemble
	resting bool          // the state has no room for clients (rests)
	copying bool          // but read-only ones may see it (copies)
	term    uint32        // counts the leaderships of this server; see leads
	told    chan struct{} // closed at the next change of status
	changed chan struct{} // closed at the next change
	since   time.Time     // of notServing
	role    time.Time     // when status.Role began
	down    time.Time     // when the server stopped serving, by the machine's clock; zero while it serves
	ready   chan struct{} // closed when the server first serves
	isReady bool

	mirror mirrorGate
}

// StateChanged implements raftfsm.Handler.
func (h handler) StateChanged(st raftfsm.Status) {
	rests, copies := h.s.modes.mirror.rests(), h.s.modes.mirror.copies()
	h.s.modes.update(func(m *modes) {
		m.rest(rests, copies)
		if leads(&st) && !leads(&m.status) {
			m.term++
		}
		if m.told != nil {
			close(m.told)
			m.told = nil
		}
		m.roleChanged(st.Role)
		// A Node that begins to serve has just found that its state is fresh. Any result
		// from the time without an ensemble is out of date.
		m.touch = m.touch || st.Serving && !m.status.Serving
		m.status = st
	})
}

// update applies change and updates the mode accordingly.
func (m *modes) update(change func(*modes)) {
	s := m.s
	m.mu.Lock()
	was, before := m.now, m.status
	change(m)
	mute := s.cfg.Quorum.LeaderNoClients && m.status.Role == raftfsm.Leader
	m.decide(mute)
	now, st, resting := m.now, m.status, m.resting
	if (now == serving || mute && st.Serving) && !m.isReady {
		m.isReady = true
		close(m.ready)
	}
	m.mu.Unlock()
	if (mute || resting) && was == serving {
		s.clients.each((*conn).kill) // they will find a server that doesn't lead
	}
	if now == serving && was != now {
		s.membersChanged() // perhaps it changed while this server was down
	}
	if was == now && (now != serving || before.Role == st.Role && before.Leader == st.Leader && before.Epoch == st.Epoch) {
		return
	}
	level := slog.LevelInfo
	if was == serving && now != serving && !s.clients.stopping() {
		level = slog.LevelWarn // its clients have lost this server
	}
	s.log.Log(context.Background(), level, "server state changed", "serving", now == serving, "role", modeName(now, st.Role), "leader", leaderWord(&st), "epoch", st.Epoch, "reason", st.Reason)
	if was == readOnly && now != readOnly {
		s.clients.each(func(c *conn) {
			if c.session.isLocal() {
				c.kill()
			}
		})
		s.clients.endLocals() // they end with this mode
	}
}

// decide sets the mode; m.mu is held. mute means that no client may use this server.
func (m *modes) decide(mute bool) {
	fresh := m.status.Serving && m.touch
	switch {
	case m.forced || fresh && m.copying:
		m.set(readOnly)
	case fresh && !mute && !m.resting:
		m.countOutage()
		m.set(serving)
	case m.now == serving || m.now == readOnly && m.copying && !m.s.cfg.ReadOnlyMode:
		m.since, m.down = m.s.cfg.Env.Now(), time.Now()
		m.set(notServing)
	}
}

// rest records whether a mirror's phase leaves room for clients; m.mu is held.
func (m *modes) rest(resting, copying bool) {
	if m.copying && !copying && m.now == readOnly {
		m.since = m.s.cfg.Env.Now()
		m.set(notServing) // until update says otherwise
	}
	m.resting, m.copying = resting, copying
}

// mayBeginLocal reports whether a read-only client may begin a session here.
func (m *modes) mayBeginLocal() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.cfg.LocalSessions || m.copying
}

// leads reports whether a server with that status leads and has applied everything before.
func leads(st *raftfsm.Status) bool {
	return st.Serving && (st.Role == raftfsm.Leader || st.Role == raftfsm.Standalone)
}

// leads returns a number that is different for each leadership of this server, 0 while it
// doesn't lead, and a channel that is closed when the status changes.
func (m *modes) leads() (term uint32, changed <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told == nil {
		m.told = make(chan struct{})
	}
	if leads(&m.status) {
		term = m.term
	}
	return term, m.told
}

// leaderWord returns the leader's id for the log, or "none": any number would be a server's
// id.
func leaderWord(st *raftfsm.Status) any {
	if st.Role == raftfsm.Looking {
		return "none"
	}
	return st.Leader
}

// isLocal reports whether c's session belongs to this server alone.
func (cs *clientSession) isLocal() bool {
	cs.c.replies.mu.Lock()
	defer cs.c.replies.mu.Unlock()
	return cs.local
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

// whyNot returns why the server doesn't answer all clients in mode now.
func (m *modes) whyNot(now mode) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch st := &m.status; {
	case m.forced:
		return "it is in forced read-only mode"
	case m.s.cfg.Quorum.LeaderNoClients && st.Role == raftfsm.Leader:
		return "it leads, and leaderServes=no"
	case st.Serving && m.resting:
		return "it follows another ensemble, or has returned its state to one (zkgo mirror status)"
	case st.Serving && !m.touch:
		return "its state is too old to serve reads: it has lost contact with the ensemble, or lags behind it"
	case st.Reason != "":
		return st.Reason
	case now == readOnly:
		return "no ensemble"
	}
	return "it is looking for a leader"
}

const (
	// electionHold is how long a server that has just stopped serving, or has just started,
	// keeps a connecting client waiting: as long as an election lasts if it doesn't wait for
	// any server.
	electionHold = 500 * time.Millisecond
	// confirmHold is how long a connecting client waits for its session while nothing
	// has arrived from a leader with a quorum since it connected.
	confirmHold = time.Second
)

// holds returns how long a connecting client with that timeout may wait for a server that
// doesn't serve. Just after the loss of service the election may be over soon, so the client
// waits for the rest of electionHold. Later the server rejects it immediately, because the
// client needs its time to find another server. If there is no other server, or for
// read-only mode, the client waits for a third of its timeout.
func (m *modes) holds(timeout time.Duration, readOnlyOK bool) time.Duration {
	s := m.s
	if !s.contact.gated || readOnlyOK && s.cfg.ReadOnlyMode || s.node.Electing() {
		return timeout / 3
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return min(timeout/3, electionHold-time.Since(m.down))
}

// await waits until the client can be served, at most for the time that holds returns.
func (m *modes) await(timeout time.Duration, readOnlyOK bool) mode {
	now, changed := m.get()
	if now == serving || now == readOnly {
		return now
	}
	limit := m.holds(timeout, readOnlyOK)
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
		case <-m.s.done:
			return notServing
		}
		if now, changed = m.get(); now == serving || now == readOnly {
			return now
		}
	}
}

// roleChanged records how long the server had its role; m.mu is held, and m still has
// the old role.
func (m *modes) roleChanged(to raftfsm.Role) {
	s := m.s
	now := time.Now()
	if m.role.IsZero() {
		m.role = s.epoch // the zero Role is Looking
	}
	from := m.status.Role
	if from == to || !s.cfg.distributed() {
		return
	}
	if from == raftfsm.Looking {
		s.stats.Elections.Observe(1, int64(now.Sub(m.role)))
	}
	if to == raftfsm.Looking {
		s.stats.Looking.Add(1)
	}
	m.role = now
}

// countOutage records how long the server has not been serving; m.mu is held, and the
// server serves from now on.
func (m *modes) countOutage() {
	if m.down.IsZero() {
		return
	}
	now, s := time.Now(), m.s
	s.stats.Unavailable.Observe(1, int64(now.Sub(m.down)))
	switch m.status.Role {
	case raftfsm.Leader:
		s.stats.Leaderless.Observe(1, int64(now.Sub(m.down)))
	case raftfsm.Follower:
		s.stats.SyncTimes.Observe(1, int64(now.Sub(m.role)))
	case raftfsm.Observer:
		s.stats.ObsSyncs.Observe(1, int64(now.Sub(m.role)))
	}
	m.down = time.Time{}
}

// inRole returns how long the server has had its role.
func (m *modes) inRole() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Since(m.role)
}

// Read-only mode: a server that has lost its ensemble answers the reads of clients that
// asked for it. Their sessions belong to this server alone, live only as long as it
// stays in that mode, and appear in no log.

// readOnlyAfter is how long a server must be without an ensemble before it enters
// read-only mode.
const readOnlyAfter = 2 * time.Second

// enterReadOnly enters read-only mode when it is time, and closes the clients that have a
// session of the ensemble.
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

// localSessions is the prefix of local session ids. No session of the ensemble has such an
// id, regardless of its server's number (session.Table).
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

// refuseReadOnly answers a client that wants to begin a session in read-only mode without
// local sessions. It sends the same header as ZooKeeper in this case, which ZooKeeper's
// client interprets as the end of the session.
func (c *conn) refuseReadOnly() bool {
	s := c.s
	s.stats.ReadOnlyRefused.Add(1)
	c.complain("rejecting a new session in read-only mode: requires localSessionsEnabled=true")
	w := c.reader.getWork()
	c.turnAway(w, proto.RequestHeader{}, proto.ErrNotReadOnly)
	w.done++
	c.replies.flush()
	return true
}

// Mirror makes the state follow another ensemble until these servers replace that ensemble.
type Mirror interface {
	// Serves reports whether clients are served before that. They read here; all other
	// requests go to the ensemble, while the leader is connected to it.
	Serves() bool
	// ReadsOnly reports whether clients that accept read-only sessions are served before that,
	// if no others are: also while the leader isn't connected to the ensemble.
	ReadsOnly() bool
	// Lead is called on a separate goroutine whenever the server begins to lead. ctx ends
	// when the server stops leading or is closed, and Lead should return soon after that.
	Lead(ctx context.Context, to raftfsm.Mirroring)
}

// mirrorGate decides which clients the phase of a mirror allows.
type mirrorGate struct {
	s       *Server
	follows atomic.Bool // the state follows another ensemble
}

// rests reports whether the state leaves no room for clients: it follows another ensemble, or
// is about to, or has been given back.
func (g *mirrorGate) rests() bool {
	s := g.s
	state, mark, _ := s.node.Mirroring().State()
	mirror := s.cfg.Env.Mirror
	switch state.Phase {
	case mirrored.None:
		return mirror != nil
	case mirrored.Following:
		return mirror == nil || !mirror.Serves() || !mark.InSync || state.Broken != ""
	}
	return state.Phase == mirrored.Fenced
}

// copies reports whether the state is a copy of another ensemble's that read-only clients may
// see.
func (g *mirrorGate) copies() bool {
	mirror := g.s.cfg.Env.Mirror
	if mirror == nil || !mirror.ReadsOnly() {
		return false
	}
	state, _, _ := g.s.node.Mirroring().State()
	return state.Phase == mirrored.Following && state.Broken == ""
}

// errNoCopy rejects observers of a server with a state that is about to be replaced.
var errNoCopy = errors.New("this server will follow another ensemble but has no state of it yet")

// source reports whether the state belongs to another ensemble, or why it isn't yet.
func (g *mirrorGate) source() (copies bool, err error) {
	state, _, _ := g.s.node.Mirroring().State()
	if state.Phase == mirrored.None && g.s.cfg.Env.Mirror != nil {
		return false, errNoCopy
	}
	return state.Phase == mirrored.Following, nil
}

// following reports whether clients are served while the state follows another ensemble.
func (g *mirrorGate) following() bool { return g.follows.Load() }

// watch keeps the server's mode up to date with the phase of a mirror, and runs the
// configured Mirror while this server leads.
func (g *mirrorGate) watch() {
	s := g.s
	stop := func() {}
	defer func() { stop() }()
	led := uint32(0) // the leadership in which Mirror runs; 0: none
	for {
		changed := s.node.Mirroring().Changed()
		rests, copies := g.rests(), g.copies()
		s.modes.update(func(m *modes) { m.rest(rests, copies) })
		state, _, _ := s.node.Mirroring().State()
		g.follows.Store(state.Phase == mirrored.Following)
		term, told := s.modes.leads()
		if mirror := s.cfg.Env.Mirror; mirror != nil && led != term {
			stop()
			led = term
			if stop = func() {}; led != 0 {
				stop = g.lead(mirror)
			}
		}
		select {
		case <-s.done:
			return
		case <-changed:
		case <-told:
		}
	}
}

// lead runs mirror until the result is called.
func (g *mirrorGate) lead(mirror Mirror) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		mirror.Lead(ctx, g.s.node.Mirroring())
	}()
	return func() {
		cancel()
		<-ended
	}
}
