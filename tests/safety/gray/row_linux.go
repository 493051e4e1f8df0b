package gray

import (
	"fmt"
	"slices"
	"time"
)

// Row is the result of one scenario with one program.
type Row struct {
	Table    string  // the table that it belongs to
	Scenario string  // what happens, the same for both programs
	Program  string  // zkgo or ZooKeeper
	Values   []Value // in the order of the table's columns
	Trials   int     // number of trials; a value is the worst trial's
	Wrong    []string
}

// Value is one measured value.
type Value struct {
	What  string
	Took  time.Duration // unless Count was measured
	Count int
	Kind  Kind
	// Limit is the limit for zkgo, in the same unit. 0: no limit.
	Limit time.Duration
	Most  int
	// Strict means that no load of the machine excuses a value above the limit.
	Strict bool
}

// Kind says which field of a Value was measured.
type Kind uint8

// These are the kinds of values.
const (
	Time    Kind = iota // Took
	AtLeast             // Took, after which the scenario gave up
	Number              // Count, at most Most
)

// String returns the value with its unit.
func (v Value) String() string {
	switch v.Kind {
	case Number:
		return fmt.Sprint(v.Count)
	case AtLeast:
		return fmt.Sprintf("over %.0f s", v.Took.Seconds())
	}
	if v.Took < 100*time.Millisecond {
		return fmt.Sprintf("%d ms", v.Took.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", v.Took.Seconds())
}

// within reports whether the value is within its limit, if it has one, on a
// machine that may delay everything by slack.
func (v Value) within(slack time.Duration) bool {
	if v.Kind == Number {
		return v.Most == 0 || v.Count <= v.Most
	}
	if v.Strict {
		slack = 0
	}
	return v.Limit == 0 || v.Kind == Time && v.Took <= v.Limit+slack
}

// String returns the row as one line.
func (r Row) String() string {
	s := fmt.Sprintf("%-9s %s (%d):", r.Program, r.Scenario, r.Trials)
	for _, v := range r.Values {
		s += fmt.Sprintf("  %s %s", v.What, v)
	}
	return s
}

// Faults returns the faults: a wrong reply from either program, and for zkgo a value that exceeds
// its limit by more than slack, which allows for the load of the machine.
func (r Row) Faults(slack time.Duration) []string {
	faults := slices.Clone(r.Wrong)
	if r.Program != zkgo {
		return faults
	}
	for _, v := range r.Values {
		if v.within(slack) {
			continue
		}
		limit := v.Limit.String()
		if v.Kind == Number {
			limit = fmt.Sprint(v.Most)
		}
		faults = append(faults, fmt.Sprintf("%s: %s: %s, the limit is %s", r.Scenario, v.What, v, limit))
	}
	return faults
}

// zkgo is the name in the rows of the program that has limits.
const zkgo = "zkgo"

// add merges another trial of the same scenario into the row.
func (r *Row) add(o Row) {
	r.Trials += o.Trials
	r.Wrong = append(r.Wrong, o.Wrong...)
	for i, v := range o.Values {
		if i >= len(r.Values) {
			r.Values = append(r.Values, v)
			continue
		}
		mine := &r.Values[i]
		if v.Kind == Number {
			mine.Count += v.Count
		} else if v.Took > mine.Took {
			mine.Took, mine.Kind = v.Took, v.Kind
		}
	}
}

// These are the tables.
const (
	deadTable   = "Connections that the network has forgotten"
	largeTable  = "Large packets from the leader are lost"
	staleTable  = "Reads at a follower that lags"
	returnTable = "Servers that come back"
	clientTable = "Servers that cannot serve, and their clients"
)
