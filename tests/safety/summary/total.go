package summary

import (
	"maps"
	"slices"
	"time"
)

// Total is the sum of runs. A void run adds only to Runs and Void, unless it had a
// violation.
type Total struct {
	Runs, Void, Failed int // all runs, and how many were void or failed
	Time               time.Duration
	Answered           int
	Unanswered         int
	Elections          int
	Faults             map[string]int
	Seen               map[string]int
	Checked            map[string]int
	Violations         int
	Failures           []string // failed runs, a line each, with the seed
	Undecided          []string
}

// NewTotal returns the sum of no runs.
func NewTotal() *Total {
	return &Total{Faults: map[string]int{}, Seen: map[string]int{}, Checked: map[string]int{}}
}

// Add adds a run.
func (t *Total) Add(r *Run) {
	t.Runs++
	t.Violations += r.Violations
	for _, b := range r.Broken {
		t.Failures = append(t.Failures, r.name()+": "+b)
	}
	if r.DidNotHeal != "" {
		t.Failures = append(t.Failures, r.name()+": "+r.DidNotHeal)
	}
	switch {
	case r.Violations > 0 || r.DidNotHeal != "":
		t.Failed++
	case len(r.Void) > 0:
		t.Void++
		return
	}
	t.Time += time.Duration(r.Seconds * float64(time.Second))
	t.Answered += r.Answered
	t.Unanswered += r.Unanswered
	t.Elections += r.Elections
	for _, u := range r.Undecided {
		t.Undecided = append(t.Undecided, r.name()+": "+u)
	}
	for _, m := range []struct{ to, from map[string]int }{{t.Faults, r.Faults}, {t.Seen, r.Seen}, {t.Checked, r.Checked}} {
		for k, n := range m.from {
			m.to[k] += n
		}
	}
}

// AllFaults returns the number of faults of all kinds.
func (t *Total) AllFaults() int {
	sum := 0
	for _, n := range t.Faults {
		sum += n
	}
	return sum
}

// by groups runs by the key that f returns, and returns the keys in sorted order.
func by(runs []*Run, f func(*Run) string) ([]string, map[string][]*Run) {
	parts := make(map[string][]*Run)
	for _, r := range runs {
		parts[f(r)] = append(parts[f(r)], r)
	}
	return slices.Sorted(maps.Keys(parts)), parts
}

func sum(runs []*Run) *Total {
	t := NewTotal()
	for _, r := range runs {
		t.Add(r)
	}
	return t
}
