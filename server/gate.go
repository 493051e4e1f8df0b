package server

import (
	"errors"
	"math"
	"sync/atomic"
	"time"
)

// errOutOfTouch closes the clients of a server that can no longer know whether their
// sessions are alive, or whose state is too old to be read.
var errOutOfTouch = errors.New("server: out of touch with the ensemble")

// never is a clock before any other, with room for differences.
const never = math.MinInt64 / 2

// gate reports whether a reply may leave. It may not once the leader may have expired
// the session: the client could then rely on a lock that another client already holds.
// docs/design/architecture.md has the rule.
func (cs *clientSession) gate() error {
	if !cs.c.s.contact.gated || cs.local || cs.id == 0 || cs.alive() {
		return nil
	}
	return errOutOfTouch
}

// alive reports whether the session of c can't have expired yet.
func (cs *clientSession) alive() bool {
	c := cs.c
	timeout := time.Duration(cs.timeout) * time.Millisecond
	return c.s.contact.knows(timeout) && c.s.clock()-cs.heardOf(c.s.contact.inTouch.Load()) < int64(timeout-timeout/10)
}

// heardOf returns a clock when the session was active that the ensemble knows: no
// leader ends the session within its timeout from then. touch is the newest contact
// with the ensemble.
func (cs *clientSession) heardOf(touch int64) int64 {
	if reported := cs.reported.Load(); reported <= touch {
		return reported
	}
	return cs.known.Load()
}

// report records that the ensemble will be told that the session is alive as of now.
func (cs *clientSession) report(now, touch int64) {
	cs.known.Store(cs.heardOf(touch))
	cs.reported.Store(now)
}

// contact is what the server knows of its ensemble: when it last heard of it, and how old
// its own state can be. Every goroutine may use it once the Node is set.
type contact struct {
	s         *Server
	confirmed func() time.Time // time of the newest proof that the ensemble knows this server
	fresh     func() time.Time // everything acknowledged by that time is applied here
	gated     bool             // whether replies depend on them
	inTouch   atomic.Int64     // clock: a time that confirmed returned
	freshAt   atomic.Int64     // clock: a time that fresh returned
}

// prepare initializes ct as the contact of s, before any other.
func (ct *contact) prepare(s *Server) {
	ct.s = s
	ct.inTouch.Store(never)
	ct.freshAt.Store(never)
}

// knows reports whether this server may answer the client of a session with that
// timeout. Two thirds of the timeout bound the time since the ensemble last heard of
// this server's sessions, and the age of the state. So the client has the last third to
// move to another server, and no read is older than two thirds.
func (ct *contact) knows(timeout time.Duration) bool {
	return ct.freshWithin(ct.limit(timeout))
}

// welcomes reports whether a client with that timeout may begin a session here. A
// server that would soon have to close the client again rejects it at once.
func (ct *contact) welcomes(timeout time.Duration) bool {
	return !ct.gated || ct.freshWithin(ct.limit(timeout)*3/4)
}

// limit returns how old the state may be for a client with that timeout.
func (ct *contact) limit(timeout time.Duration) time.Duration {
	return min(timeout*2/3, time.Duration(ct.s.cfg.SyncLimit)*ct.s.cfg.TickTime)
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
	s := ct.s
	touch := now-ct.freshAt.Load() < int64(s.cfg.SyncLimit)*int64(s.cfg.TickTime)
	s.modes.update(func(m *modes) { m.touch = touch })
}
