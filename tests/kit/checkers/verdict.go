package checkers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/kit/history"
)

// Options determines how strict the checkers are. The zero value is right for a run with
// only one fault at a time.
type Options struct {
	// Search bounds the total time of the search for a linearization; default 10
	// s. Registers that are not decided by then are reported as undecided, which
	// is no violation.
	Search time.Duration
	// OnlyTold judges locks only by the servers' replies to the holders, not by the holders'
	// belief. You should set it for runs that cut a client off from its server and that server off
	// from the leader at the same time, because no server can tell the client then.
	OnlyTold bool
	// Heard is the part of its timeout, in tenths, that a session must live
	// after a request that was answered; default 1. A server that has lost its
	// leader answers for nine tenths of a timeout after the last request that the
	// leader heard of, so only one tenth may be left, e.g. if the client was
	// silent before. 10 is right for runs in which no server was ever cut off or
	// stopped.
	Heard int
	// Most is how many violations of each checker are kept; default 5.
	Most int
}

// Verdict is the findings of all checkers.
type Verdict struct {
	Results []*Result
}

// Result is the findings of one checker.
type Result struct {
	Checker    string
	Counts     []Count
	Violations []Violation
	More       int      // violations that were not kept
	Undecided  []string // not decided in time

	most int
}

// Count says how many of something a checker examined.
type Count struct {
	What string
	N    int
}

// Violation is a broken guarantee.
type Violation struct {
	What string
	// Around is the part of the history that shows it: the contradicting records,
	// and the notes about the faults at that time.
	Around []string
}

// OK reports whether no checker found a violation.
func (v *Verdict) OK() bool {
	for _, r := range v.Results {
		if len(r.Violations) > 0 {
			return false
		}
	}
	return true
}

// Count returns how many of something a checker examined, or 0 if it does not
// count them.
func (v *Verdict) Count(checker, what string) int {
	for _, r := range v.Results {
		for _, c := range r.Counts {
			if r.Checker == checker && c.What == what {
				return c.N
			}
		}
	}
	return 0
}

// Violated returns the names of the checkers that found a violation.
func (v *Verdict) Violated() []string {
	var names []string
	for _, r := range v.Results {
		if len(r.Violations) > 0 {
			names = append(names, r.Checker)
		}
	}
	return names
}

// String returns the verdict for people to read.
func (v *Verdict) String() string {
	var b strings.Builder
	for _, r := range v.Results {
		word := "ok"
		switch {
		case len(r.Violations) > 0:
			word = "VIOLATED"
		case len(r.Undecided) > 0:
			word = "UNDECIDED"
		}
		fmt.Fprintf(&b, "%-10s %-9s", r.Checker, word)
		for i, c := range r.Counts {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %d %s", c.N, c.What)
		}
		b.WriteString("\n")
		for _, u := range r.Undecided {
			fmt.Fprintf(&b, "    undecided: %s\n", u)
		}
		for _, x := range r.Violations {
			fmt.Fprintf(&b, "    %s\n", x.What)
			for _, line := range x.Around {
				fmt.Fprintf(&b, "        %s\n", line)
			}
		}
		if r.More > 0 {
			fmt.Fprintf(&b, "    and %d more\n", r.More)
		}
	}
	return b.String()
}

// count records how many of something the checker examined.
func (r *Result) count(n int, what string) { r.Counts = append(r.Counts, Count{what, n}) }

// record is any record of a history.
type record interface {
	fmt.Stringer
}

// violation records a broken guarantee and the records that show it.
func (r *Result) violation(x *index, records []record, format string, args ...any) {
	if len(r.Violations) >= r.most {
		r.More++
		return
	}
	r.Violations = append(r.Violations, Violation{What: fmt.Sprintf(format, args...), Around: x.around(records)})
}

// around returns the records as lines in order of time, without duplicates, with
// the notes from that time.
func (x *index) around(records []record) []string {
	type entry struct {
		at   history.Time
		line string
	}
	var list []entry
	var from, to history.Time
	for _, r := range records {
		at := when(r)
		if e := (entry{at, r.String()}); !slices.Contains(list, e) {
			list = append(list, e)
		}
		if from == 0 || at < from {
			from = at
		}
		to = max(to, at)
	}
	var before *history.Note
	for _, n := range x.h.Notes {
		switch {
		case n.At < from:
			before = n
		case n.At <= to:
			list = append(list, entry{n.At, n.String()})
		}
	}
	if before != nil {
		list = append(list, entry{before.At, before.String()})
	}
	slices.SortStableFunc(list, func(a, b entry) int { return int(max(-1, min(1, a.at-b.at))) })
	var lines []string
	for _, e := range list {
		lines = append(lines, e.line)
	}
	const most = 40
	if n := len(lines); n > most {
		lines = append(append(lines[:most/2:most/2], fmt.Sprintf("… %d more …", n-most)), lines[n-most/2:]...)
	}
	return lines
}

// when returns the time that a record is sorted by.
func when(r record) history.Time {
	switch r := r.(type) {
	case *history.Op:
		return max(r.Call, r.Return)
	case *history.Event:
		return r.At
	case *history.Session:
		return r.At
	case *history.Hold:
		return r.From
	case *history.State:
		return r.At
	}
	return 0
}
