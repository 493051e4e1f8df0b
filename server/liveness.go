package server

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/poller"
	"github.com/zkgo/zkgo/session"
)

// errOutOfTouch is the reason for closing a client if the server can no longer know whether
// the client's session is alive, or if the server's state is too old for reads.
var errOutOfTouch = errors.New("server: out of touch with the ensemble")

// never is a clock before any other, with room for differences.
const never = math.MinInt64 / 2

// gate reports whether a reply may leave. We hold back replies once the leader may have
// expired the session: the client could rely on a lock that another client already holds.
// session/liveness.go has the rule.
func (cs *clientSession) gate() error {
	if !cs.c.s.contact.gated || cs.local || cs.id == 0 || cs.alive() {
		return nil
	}
	return errOutOfTouch
}

// alive reports whether the session of c can't have expired yet.
func (cs *clientSession) alive() bool {
	ct, timeout := &cs.c.s.contact, time.Duration(cs.timeout)*time.Millisecond
	return ct.freshWithin(ct.bounds.Reply(timeout)) && cs.signs.Alive(timeout, cs.c.s.clock(), ct.inTouch.Load())
}

// contact is the server's contact with its ensemble: when it last heard from the ensemble,
// and how old its own state can be. Every goroutine may use it once the Node is set.
type contact struct {
	s         *Server
	confirmed func() time.Time // time of the newest proof that the ensemble knows this server
	fresh     func() time.Time // everything acknowledged by that time is applied here
	gated     bool             // whether replies depend on them
	bounds    session.Bounds   // and how old they may be
	inTouch   atomic.Int64     // clock: a time that confirmed returned
	freshAt   atomic.Int64     // clock: a time that fresh returned
}

// prepare initializes ct as the contact of s, before any other.
func (ct *contact) prepare(s *Server) {
	ct.s = s
	ct.bounds.Sync = time.Duration(s.cfg.Quorum.SyncLimit) * s.cfg.TickTime
	ct.inTouch.Store(never)
	ct.freshAt.Store(never)
}

// welcomes reports whether a client with that timeout may begin a session here.
func (ct *contact) welcomes(timeout time.Duration) bool {
	return !ct.gated || ct.freshWithin(ct.bounds.Welcome(timeout))
}

// freshWithin reports whether the state is no older than limit.
func (ct *contact) freshWithin(limit time.Duration) bool {
	now := ct.s.clock()
	if now-ct.freshAt.Load() < int64(limit) {
		return true // asking costs more than a reply
	}
	ct.refresh()
	return now-ct.freshAt.Load() < int64(limit)
}

// refresh updates inTouch, the newest proof that the ensemble knows this server, and
// freshAt, the newest proof that this server is up to date. It returns
// the former.
func (ct *contact) refresh() int64 {
	fresh := max(int64(ct.fresh().Sub(ct.s.epoch)), never)
	at := max(int64(ct.confirmed().Sub(ct.s.epoch)), never)
	ct.freshAt.Store(fresh)
	ct.inTouch.Store(at)
	return at
}

// check stops service when the server's state is syncLimit ticks old, because the server
// lags behind or has lost contact.
func (ct *contact) check(now int64) {
	if !ct.gated {
		return
	}
	ct.refresh()
	touch := now-ct.freshAt.Load() < int64(ct.bounds.Sync)
	ct.s.modes.update(func(m *modes) { m.touch = touch })
}

// tend periodically closes connections that have been silent for too long or that the
// server may no longer answer, and enforces the bounds over all connections.
func (s *Server) tend() {
	every := min(s.cfg.TickTime/2, s.cfg.MinSessionTimeout/8)
	timer := time.NewTimer(every)
	defer timer.Stop()
	last := s.clock()
	for {
		select {
		case <-s.done:
			return
		case <-s.relieve:
			s.relieved()
			continue
		case <-timer.C:
		}
		timer.Reset(s.node.UntilNext(every))
		now := s.clock()
		late := now-last > int64(2*every)
		last = now
		s.complaints.CatchUp(now)
		s.contact.check(now)
		s.modes.enterReadOnly()
		if late {
			s.clients.credit(now)
			continue
		}
		s.clients.each(func(c *conn) { c.check(now) })
	}
}

// credit resets the silence of all clients. It is called after the whole process was
// stopped: messages that clients sent in the meantime are still unread in the sockets.
func (t *clientTable) credit(now int64) {
	t.each(func(c *conn) { c.session.last.Store(now) })
}

// check closes c if it has been silent for its session's timeout, if it has waited too
// long for a session, or if the server may no longer answer it.
func (c *conn) check(now int64) {
	s := c.s
	c.replies.mu.Lock()
	timeout, sid := time.Duration(c.session.timeout)*time.Millisecond, c.session.id
	waits, gated := c.replies.head != nil || c.replies.barred.Load(), s.contact.gated && !c.session.local && c.session.id != 0
	c.replies.mu.Unlock()
	limit := timeout
	switch {
	case sid == 0 && waits:
		limit /= 3 // leaves the client time for another server
		if s.contact.gated && s.contact.inTouch.Load() <= c.session.last.Load() && !s.node.Electing() {
			limit = min(limit, confirmHold) // there may be no leader that can create the session
		}
	case sid == 0:
		limit = s.cfg.Limits.SessionlessTimeout
	case waits:
		limit = 0 // the client waits for us
	}
	if sid != 0 && !c.lookAtSlow(now, int64(timeout)) {
		return
	}
	if limit > 0 && now-c.session.last.Load() > int64(limit) || gated && !c.session.alive() {
		s.log.Debug("closing a silent client", "client", c.nc.RemoteAddr(), "session", sessionID(sid))
		s.stats.Expired.Add(1)
		c.kill()
	}
}

// lookAtSlow checks a client that is being written to, or that has been silent for half
// of limit, for signs of life. It returns false if it closed the client.
func (c *conn) lookAtSlow(now, limit int64) bool {
	q := &c.replies
	q.mu.Lock()
	writing, written, waiting := q.writing, q.sentBytes, q.pushing
	if q.out != nil {
		waiting += len(q.out.B)
	}
	q.mu.Unlock()
	if !writing && now-c.session.last.Load() < limit/2 {
		q.slow = limits.Progress{}
		return true
	}
	unsent, inbox := poller.Queued(c.kernel)
	alive, stalled := q.slow.Look(now, written-int64(unsent), inbox, waiting+unsent)
	if stalled {
		c.s.stats.Dropped.Add(1)
		c.s.complaints.Warn(c.s.clock(), "closing a client that reads its replies too slowly", "client", c.nc.RemoteAddr(), "bytes", waiting+unsent)
		c.kill()
		return false
	}
	if alive {
		c.session.last.Store(now)
		c.session.heard.Store(true)
	}
	return true
}
