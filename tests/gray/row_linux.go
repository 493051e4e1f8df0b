package gray

import (
	"fmt"
	"slices"
	"time"
)

// Row is what one scenario has shown of one program.
type Row struct {
	Table    string  // the table that it belongs to
	Scenario string  // what happens, the same for both programs
	Program  string  // which one
	Values   []Value // in the order of the table's columns
	Trials   int     // how often it was done; a value is the worst of them
	Wrong    []string
}

// Value is one figure.
type Value struct {
	What  string
	Took  time.Duration // unless Count is what was measured
	Count int
	Kind  Kind
	// Limit is what zkgo keeps to, in the same unit. 0: no limit.
	Limit time.Duration
	Most  int
	// Strict says that no load of the machine excuses a value above the limit.
	Strict bool
}

// Kind says which field of a Value was measured.
type Kind uint8

// The kinds of values.
const (
	Time    Kind = iota // Took
	AtLeast             // Took, after which the scenario was given up
	Number              // Count, at most Most
)

// String is the value with its unit.
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

// within says whether the value keeps to its limit, if it has one, on a machine
// that may hold everything up for slack.
func (v Value) within(slack time.Duration) bool {
	if v.Kind == Number {
		return v.Most == 0 || v.Count <= v.Most
	}
	if v.Strict {
		slack = 0
	}
	return v.Limit == 0 || v.Kind == Time && v.Took <= v.Limit+slack
}

// String is the row in a line.
func (r Row) String() string {
	s := fmt.Sprintf("%-9s %s (%d):", r.Program, r.Scenario, r.Trials)
	for _, v := range r.Values {
		s += fmt.Sprintf("  %s %s", v.What, v)
	}
	return s
}

// Faults says what is not as it must be: a wrong answer of either program, and
// of zkgo a value above its limit by more than slack, which is for the load of
// the machine.
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

// zkgo is what the rows call the program that has limits.
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

// The tables.
const (
	deadTable   = "Connections that the network has forgotten"
	largeTable  = "Large packets from the leader are lost"
	staleTable  = "Reads at a follower that lags"
	returnTable = "Servers that come back"
	clientTable = "Servers that cannot serve, and their clients"
)
