package tree

import "github.com/zkgo/zkgo/tree/internal/arena"

// journal records how to undo the operations of the multi that is running. Outside
// a multi it records nothing.
type journal struct {
	active bool
	steps  []step
	before totals

	// cversions contains the child numbers that have wrapped within the multi: they keep
	// counting for its operations, but aren't stored.
	cversions map[*node]int32

	// quotas contains limits and usage as they were before the multi, by limited path. It
	// has the quotas that the multi has changed or checked so far; a nil entry means that
	// the multi has created the quota. We fill it only if quotas are enforced.
	enforced bool
	quotas   map[string]*quota
}

// action is the kind of a step of the journal.
type action uint8

const (
	changed action = iota // was has the state before
	created
	deleted // n still knows its parent and its position; end vacates it
)

type step struct {
	what action
	n    *node
	was  arena.State
}

func (j *journal) changed(n *node) {
	if j.active {
		j.steps = append(j.steps, step{changed, n, *n.State()})
	}
}

func (j *journal) created(n *node) {
	if j.active {
		j.steps = append(j.steps, step{what: created, n: n})
	}
}

// deleted records the removal of n. It reports whether the journal now owns n.
func (j *journal) deleted(n *node) bool {
	if j.active {
		j.steps = append(j.steps, step{what: deleted, n: n})
	}
	return j.active
}

// wrapped records that the child number of n has wrapped.
func (j *journal) wrapped(n *node, cversion int32) {
	if !j.active {
		return
	}
	if j.cversions == nil {
		j.cversions = make(map[*node]int32)
	}
	j.cversions[n] = cversion
}

// begin starts the journal.
func (t *editor) begin(p Policy) {
	t.undo.active, t.undo.before = true, t.totals
	t.undo.enforced = p&EnforceQuota != 0
}

// end ends the multi: it vacates deleted nodes and keeps the journal's memory unless
// that is large.
func (t *editor) end() {
	steps := t.undo.steps
	for i := range steps {
		if steps[i].what == deleted {
			t.arena.Vacate(steps[i].n)
		}
	}
	clear(steps)
	if cap(steps) > 1024 {
		steps = nil
	}
	t.undo = journal{steps: steps[:0]}
}

// rollback undoes every step, the last one first. The images in snapshots stay correct,
// because they show the restored state.
func (t *editor) rollback() {
	steps := t.undo.steps
	t.undo.active = false
	for i := len(steps) - 1; i >= 0; i-- {
		s := &steps[i]
		switch s.what {
		case created:
			t.detach(s.n)
			t.arena.Vacate(s.n)
		case deleted:
			t.reattach(s.n)
		case changed:
			t.uncount(s.n)
			if s.n.State().ACL != s.was.ACL {
				t.acls.Retain(s.was.ACL)
				t.acls.Release(s.n.State().ACL)
			}
			*s.n.State() = s.was
			t.count(s.n)
		}
	}
	t.totals = t.undo.before
	clear(steps)
	t.undo.steps = steps[:0]
}
