package checkers

import (
	"cmp"
	"math"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// An order of all accesses that explains every reply proves that a register is right,
// wherever the order comes from. The zxids of the replies suggest one. We can try it quickly,
// whereas a search may never end. If that order fails, we search, so wrong zxids can't hide a
// violation.

// witness reports whether the order of the zxids explains all replies.
func witness(ops []porcupine.Operation) bool {
	w := trial{}
	for _, op := range ops {
		a, ok := op.Input.(*access)
		switch {
		case !ok:
			return false
		case a.zxid > 0:
			w.placed = append(w.placed, op)
		case a.unknown:
			w.open = append(w.open, op)
		default:
			return false
		}
	}
	slices.SortStableFunc(w.placed, func(x, y porcupine.Operation) int {
		a, b := x.Input.(*access), y.Input.(*access)
		return cmp.Or(cmp.Compare(a.zxid, b.zxid), cmp.Compare(a.rank(), b.rank()), cmp.Compare(x.Call, y.Call))
	})
	slices.SortStableFunc(w.open, func(x, y porcupine.Operation) int { return cmp.Compare(x.Call, y.Call) })
	w.learn()
	return w.holds()
}

// learn gives writes without a reply the version that a read shows: a value that
// no client has read may have been written before.
func (w *trial) learn() {
	versions := make(map[string]int32)
	for _, op := range w.placed {
		if a := op.Input.(*access); a.kind == proto.OpGetData && a.code == proto.Ok {
			versions[a.read] = a.version
		}
	}
	for i, op := range w.placed {
		a := *op.Input.(*access)
		if version, ok := versions[a.value]; ok && a.unknown && a.value != "" {
			a.unknown, a.code, a.version = false, proto.Ok, version
			w.placed[i].Input = &a
		}
	}
}

// rank orders a write before the reads of its transaction.
func (a *access) rank() int {
	if a.kind == proto.OpGetData {
		return 1
	}
	return 0
}

// trial is one attempt with an order.
type trial struct {
	placed []porcupine.Operation // in that order
	open   []porcupine.Operation // without a reply, may have been executed or not; by Call
	s      register
	called history.Time // the latest Call so far: no access that ended before it may follow
}

func (w *trial) holds() bool {
	until := make([]history.Time, len(w.placed)+1) // the earliest Return from there on
	until[len(w.placed)] = math.MaxInt64
	for i := len(w.placed) - 1; i >= 0; i-- {
		until[i] = min(until[i+1], w.placed[i].Return)
	}
	for i, op := range w.placed {
		a := op.Input.(*access)
		if _, ok := a.step(w.s); !ok && !w.explain(a, until[i], 3) {
			return false
		}
		next, ok := a.step(w.s)
		if !ok || op.Return < w.called {
			return false
		}
		w.s, w.called = next, max(w.called, op.Call)
	}
	for _, op := range w.open { // never executed, or after everything else
		if op.Return < w.called {
			return false
		}
	}
	return true
}

// explain executes as few of the open writes as are needed for the reply of the access, and
// no more than most. No client reads the value of an open write, so all open writes of a kind are
// equivalent. We use the one sent first, because later accesses can then use most of the others.
func (w *trial) explain(a *access, until history.Time, most int) bool {
	for depth := 1; depth <= most; depth++ {
		if w.explainIn(a, until, depth) {
			return true
		}
	}
	return false
}

func (w *trial) explainIn(a *access, until history.Time, depth int) bool {
	if depth == 0 {
		_, ok := a.step(w.s)
		return ok
	}
	type class struct {
		kind   proto.Op
		expect int32
	}
	tried := make(map[class]bool)
	for i, op := range w.open {
		if op.Call > until {
			break
		}
		u := op.Input.(*access)
		code, next := u.outcome(w.s)
		c := class{u.kind, u.expect}
		if code != proto.Ok || op.Return < w.called || tried[c] {
			continue
		}
		tried[c] = true
		before := *w
		w.s, w.called = next, max(w.called, op.Call)
		w.open = slices.Delete(slices.Clone(w.open), i, i+1)
		if w.explainIn(a, until, depth-1) {
			return true
		}
		*w = before
	}
	return false
}

// fewer drops redundant reads: a value that only one write writes exists for one
// interval. If that interval touches the first-answered and the last-sent read of
// the value, it touches all reads in between.
func fewer(ops []porcupine.Operation) []porcupine.Operation {
	type state struct {
		value   string
		version int32
	}
	writers := make(map[string]int)
	first, last := make(map[state]int), make(map[state]int)
	shows := func(a *access) bool { return a.kind == proto.OpGetData && a.code == proto.Ok && writers[a.read] == 1 }
	for _, op := range ops {
		if a := op.Input.(*access); a.kind != proto.OpGetData {
			writers[a.value]++
		}
	}
	for i, op := range ops {
		a := op.Input.(*access)
		if !shows(a) {
			continue
		}
		s := state{a.read, a.version}
		if j, ok := first[s]; !ok || op.Return < ops[j].Return {
			first[s] = i
		}
		if j, ok := last[s]; !ok || op.Call > ops[j].Call {
			last[s] = i
		}
	}
	var kept []porcupine.Operation
	for i, op := range ops {
		a := op.Input.(*access)
		if s := (state{a.read, a.version}); !shows(a) || first[s] == i || last[s] == i {
			kept = append(kept, op)
		}
	}
	return kept
}
