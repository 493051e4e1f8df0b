package raftfsm

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// returnWithin is how long a client that has just been answered may take until its
	// next write is here and still be waited for, and perReturner as much more for
	// each that was answered with it: they come one after the other. Three servers on
	// one machine take about half of it.
	returnWithin = 400 * time.Microsecond
	perReturner  = 15 * time.Microsecond

	// gatherWithin is the same for a server without an ensemble that has been asked to
	// gather.
	gatherWithin = 200 * time.Microsecond

	// returnMost bounds both together.
	returnMost = time.Millisecond

	// Of the last lastWaits waits maxInVain may have been in vain for the next entry to
	// wait as well, of fewer in proportion. One more, and minRest entries do not, twice
	// as many when that happens again, up to maxRest. Clients who come at random times
	// are, a few at a time, often enough there in time to look like some who come back;
	// they are not three times out of four. A wait in vain is dear: a runtime that has
	// nothing else to do sleeps for whole milliseconds.
	lastWaits = 16
	maxInVain = 4
	minRest   = 16
	maxRest   = 4096
)

// returners decides whether the next entry waits, after one was applied, for those
// whom that one has answered. Clients that do nothing but write come back at once,
// and those that come just behind an entry would each wait for the whole of it: two
// entries of three clients, of which each waits for both, are worth less than one
// for all. Where they do not come back it soon stops to wait. A client that writes
// alone never waits. It is for the goroutine of the proposer only.
type returners struct {
	limit  func() time.Duration // nil or 0: none
	come   *atomic.Bool         // tells others whether they have come back lately
	timer  *time.Timer
	target int    // weight of what is waited for; 0: nobody
	inVain uint16 // the last lastWaits waits, the newest first: 1 for one that was in vain
	since  int    // waits since the last rest
	pause  int    // the next rest
	rest   int    // so many entries are not waited behind
}

func newReturners(limit func() time.Duration, come *atomic.Bool) *returners {
	w := &returners{limit: limit, come: come, timer: time.NewTimer(time.Hour), pause: minRest}
	w.timer.Stop()
	return w
}

// applied begins to wait, behind an entry that held ops commands; so much weight
// waited before it was applied, which those it answered have not brought. Bytes of
// those who come back are not counted on: they vary.
func (w *returners) applied(ops, waiting int) {
	limit := time.Duration(0)
	if w.limit != nil {
		limit = w.limit()
	}
	switch {
	case limit == 0:
		w.since = 0
		w.come.Store(false)
	case waiting+weight(ops, 0) <= weight(1, 0): // whoever comes first is all
	case w.rest > 0:
		w.rest--
	default:
		w.target = min(waiting+weight(ops, 0), fullWeight)
		w.timer.Reset(min(limit+time.Duration(ops)*perReturner, returnMost))
	}
}

// waits says whether the next entry has to wait for more than is there.
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

// note takes down how a wait ended, and draws the conclusion.
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
