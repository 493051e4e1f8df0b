package summary

import (
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/kit/checkers"
)

// Run is the result of one run. The zero value is a run that did nothing.
type Run struct {
	Suite   string    `json:"suite"`  // simulation or chaos
	Layout  string    `json:"layout"` // of the ensemble
	Seed    uint64    `json:"seed"`
	Ended   time.Time `json:"ended"`
	Seconds float64   `json:"seconds"` // during which clients worked, in the clients' time

	Answered   int `json:"answered"`             // requests with a reply
	Unanswered int `json:"unanswered,omitempty"` // requests without a reply
	Elections  int `json:"elections"`

	Faults  map[string]int `json:"faults,omitempty"`  // that had an effect, by kind
	Seen    map[string]int `json:"seen,omitempty"`    // other observed events
	Checked map[string]int `json:"checked,omitempty"` // counts from the checkers, as "checker: what"

	Violations int      `json:"violations"`           // number of violations
	Broken     []string `json:"broken,omitempty"`     // descriptions of the reported ones, a line each
	Undecided  []string `json:"undecided,omitempty"`  // checks that a checker could not finish
	Void       []string `json:"void,omitempty"`       // why the run proves nothing although it had no violation
	DidNotHeal string   `json:"didNotHeal,omitempty"` // the step at which the ensemble or a fault failed
}

// Judge records the checkers' verdict.
func (r *Run) Judge(v *checkers.Verdict) {
	if r.Checked == nil {
		r.Checked = make(map[string]int)
	}
	for _, x := range v.Results {
		for _, c := range x.Counts {
			r.Checked[x.Checker+": "+c.What] += c.N
		}
		for _, v := range x.Violations {
			r.Violate(x.Checker + ": " + v.What)
		}
		r.Violations += x.More
		for _, u := range x.Undecided {
			r.Undecided = append(r.Undecided, x.Checker+": "+u)
		}
	}
}

// Violate records a violation.
func (r *Run) Violate(what string) {
	what, _, _ = strings.Cut(what, "\n")
	r.Violations++
	r.Broken = append(r.Broken, what)
}
