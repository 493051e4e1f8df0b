package server

import (
	"errors"
	"math"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/session"
)

// errOutOfTouch closes the clients of a server that can no longer know whether their
// sessions are alive, or whose state is too old to be read.
var errOutOfTouch = errors.New("server: out of touch with the ensemble")

// never is a clock before any other, with room for differences.
const never = math.MinInt64 / 2

// gate reports whether a reply may leave. It may not once the leader may have expired
// the session: the client could then rely on a lock that another client already holds.
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

// contact is what the server knows of its ensemble: when it last heard of it, and how old
// its own state can be. Every goroutine may use it once the Node is set.
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
// freshAt, the newest proof that this server has what the ensemble knows. It returns
// the former.
func (ct *contact) refresh() int64 {
	fresh := max(int64(ct.fresh().Sub(ct.s.epoch)), never)
	at := max(int64(ct.confirmed().Sub(ct.s.epoch)), never)
	ct.freshAt.Store(fresh)
	ct.inTouch.Store(at)
	return at
}

// check stops the server from serving when its state is syncLimit ticks old, because it
// lags behind or has lost contact.
func (ct *contact) check(now int64) {
	if !ct.gated {
		return
	}
	ct.refresh()
	touch := now-ct.freshAt.Load() < int64(ct.bounds.Sync)
	ct.s.modes.update(func(m *modes) { m.touch = touch })
}
