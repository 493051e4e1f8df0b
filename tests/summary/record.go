package summary

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/checkers"
)

// Run is what one run has shown. The zero value is a run that did nothing.
type Run struct {
	Suite   string    `json:"suite"`  // simulation or chaos
	Layout  string    `json:"layout"` // of the ensemble
	Seed    uint64    `json:"seed"`
	Ended   time.Time `json:"ended"`
	Seconds float64   `json:"seconds"` // during which clients worked, in the time that they saw

	Answered   int `json:"answered"`             // requests with a reply
	Unanswered int `json:"unanswered,omitempty"` // and without
	Elections  int `json:"elections"`

	Faults  map[string]int `json:"faults,omitempty"`  // that took effect, by kind
	Seen    map[string]int `json:"seen,omitempty"`    // what was seen to happen besides
	Checked map[string]int `json:"checked,omitempty"` // what the checkers looked at, as "checker: what"

	Violations int      `json:"violations"`           // promises broken, all of them
	Broken     []string `json:"broken,omitempty"`     // those that were told, a line each
	Undecided  []string `json:"undecided,omitempty"`  // what a checker came to no end with
	Void       []string `json:"void,omitempty"`       // why the run shows nothing though it broke no promise
	DidNotHeal string   `json:"didNotHeal,omitempty"` // the ensemble or a fault did not do what it should have
}

// Judge notes what the checkers found.
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

// Violate notes a promise broken.
func (r *Run) Violate(what string) {
	what, _, _ = strings.Cut(what, "\n")
	r.Violations++
	r.Broken = append(r.Broken, what)
}

// Append adds a run to the end of a file, which is made if it is not there.
func Append(name string, r *Run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n')) // in one piece: others append, too
	return errors.Join(err, f.Close())
}

// Read reads runs.
func Read(from io.Reader) ([]*Run, error) {
	var runs []*Run
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for n := 1; lines.Scan(); n++ {
		r := new(Run)
		if err := json.Unmarshal(lines.Bytes(), r); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		runs = append(runs, r)
	}
	return runs, lines.Err()
}
