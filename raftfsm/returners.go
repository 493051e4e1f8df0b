package raftfsm

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// returnWithin is how long the proposer waits for the next write of a client that
	// just got its reply. perReturner is added for each client of the same entry,
	// because they arrive one after another. Three servers on one machine take about
	// half of that.
	returnWithin = 400 * time.Microsecond
	perReturner  = 15 * time.Microsecond

	// gatherWithin is the same for a standalone server when Gather is on.
	gatherWithin = 200 * time.Microsecond

	// returnMost bounds the whole wait.
	returnMost = time.Millisecond

	// The next entry waits only if at most maxInVain of the last lastWaits waits were
	// in vain, or proportionally fewer of fewer waits. Above that, minRest entries do
	// not wait; the number doubles each time this happens again, up to maxRest. A few
	// clients that write at random times often arrive early enough to look like
	// returning clients, but not three times out of four. A wait in vain is expensive:
	// an idle runtime sleeps for whole milliseconds.
	lastWaits = 16
	maxInVain = 4
	minRest   = 16
	maxRest   = 4096
)

// returners decides whether the proposer, after an entry was applied, waits for the
// next writes of the clients that got their replies. Clients that only write return
// immediately. Without the wait, a client that returns just after the next entry has
// started waits for that whole entry. One entry for all is better than two entries of
// three clients each, where each client waits for both. Where clients do not return, it
// soon stops waiting. It never waits for a client that writes alone. Only the
// proposer's goroutine uses it.
type returners struct {
	limit  func() time.Duration // nil or 0: none
	come   *atomic.Bool         // whether clients have returned lately, for concurrent readers
	timer  *time.Timer
	target int    // weight to wait for; 0: no wait
	inVain uint16 // the last lastWaits waits, the newest in bit 0: 1 for a wait in vain
	since  int    // waits since the last rest
	pause  int    // length of the next rest
	rest   int    // number of entries left without a wait
}

func newReturners(limit func() time.Duration, come *atomic.Bool) *returners {
	w := &returners{limit: limit, come: come, timer: time.NewTimer(time.Hour), pause: minRest}
	w.timer.Stop()
	return w
}

// applied starts a wait after an entry of ops commands. waiting is the weight that was
// queued before the entry was applied, so it isn't from the clients that just got their
// replies. The target ignores the bytes of their next commands, because these vary.
func (w *returners) applied(ops, waiting int) {
	limit := time.Duration(0)
	if w.limit != nil {
		limit = w.limit()
	}
	switch {
	case limit == 0:
		w.since = 0
		w.come.Store(false)
	case waiting+weight(ops, 0) <= weight(1, 0): // one client completes the target
	case w.rest > 0:
		w.rest--
	default:
		w.target = min(waiting+weight(ops, 0), fullWeight)
		w.timer.Reset(min(limit+time.Duration(ops)*perReturner, returnMost))
	}
}

// waits reports whether the next entry has to wait for more commands.
func (w *returners) waits(b *backlog) bool {
	if w.target > 0 && b.reached(w.target) {
		w.end()
		w.note(0)
	}
	return w.target > 0
}

// expired ends a wait in vain.
func (w *returners) expired() {
	w.end()
	w.note(1)
}

// note records how a wait ended, and decides about the next ones.
func (w *returners) note(inVain uint16) {
	w.inVain = w.inVain<<1 | inVain
	w.since++
	switch {
	case bits.OnesCount16(w.inVain) > 1+min(w.since, lastWaits)*(maxInVain-1)/lastWaits:
		w.rest, w.pause = w.pause, min(2*w.pause, maxRest)
		w.inVain, w.since = 0, 0
		w.come.Store(false)
	case w.since >= lastWaits:
		w.pause = minRest
		w.come.Store(true)
	}
}

// end ends the wait.
func (w *returners) end() {
	w.target = 0
	w.timer.Stop()
}
