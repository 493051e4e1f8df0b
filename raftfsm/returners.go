package raftfsm

import "time"

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

	// maxInVain bounds how seldom the proposer waits where it waited in vain: once
	// in 2^maxInVain entries.
	maxInVain = 6
)

// returners decides whether the next entry waits, after one was applied, for those
// whom that one has answered. Clients that do nothing but write come back at once,
// and those that come just behind an entry would each wait for the whole of it: two
// entries of three clients, of which each waits for both, are worth less than one
// for all. Where they do not come back it soon stops to wait. A client that writes
// alone never waits. It is for the goroutine of the proposer only.
type returners struct {
	limit  func() time.Duration // nil or 0: none
	timer  *time.Timer
	target int // weight of what is waited for; 0: nobody
	inVain int // how often, less how often it was not, at most maxInVain
	rest   int // so many entries are not waited behind
}

func newReturners(limit func() time.Duration) *returners {
	w := &returners{limit: limit, timer: time.NewTimer(time.Hour)}
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
	case limit == 0 || ops == 0:
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
		w.inVain = max(w.inVain-1, 0)
	}
	return w.target > 0
}

// expired ends a wait in vain.
func (w *returners) expired() {
	w.end()
	w.inVain = min(w.inVain+1, maxInVain)
	w.rest = 1<<w.inVain - 1
}

// end ends the wait.
func (w *returners) end() {
	w.target = 0
	w.timer.Stop()
}
