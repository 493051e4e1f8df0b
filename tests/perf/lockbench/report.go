package lockbench

import (
	"slices"
	"strings"

	"github.com/zkgo/zkgo/tests/kit/report"
	"github.com/zkgo/zkgo/tests/perf/lockbench/load"
)

// Report is everything that one run measured.
type Report struct {
	report.Frame
	Small     bool              // nothing was measured, only shown to work
	Skipped   map[string]string // the omitted services, and why
	Rows      []*Row
	Crowds    []Crowd
	Failovers []Timeline
}

// Row contains the results of one kind of lock on one service, a Result for each turn.
type Row struct {
	Service, Kind, Label, Durable string
	Own, Shared, Worked           []load.Result
}

// Crowd is the cost of one release of a lock that many clients wait for.
type Crowd struct {
	Service, Kind, Label string
	Waiters, Releases    int
	Packets              float64 // received and sent by the server, median
	HandOff              float64 // µs, median
}

func newReport(small bool) *Report {
	return &Report{Frame: report.Begin(), Small: small, Skipped: map[string]string{}}
}

// row returns a contender's row, and adds it if it is missing.
func (r *Report) row(c contender, durable string) *Row {
	i := slices.IndexFunc(r.Rows, func(row *Row) bool { return row.Service == c.service && row.Kind == c.kind })
	if i < 0 {
		r.Rows = append(r.Rows, &Row{Service: c.service, Kind: c.kind, Label: c.label, Durable: durable})
		i = len(r.Rows) - 1
	}
	return r.Rows[i]
}

// find returns a row by its contender's key, or nil if there is none.
func (r *Report) find(key string) *Row {
	for _, row := range r.Rows {
		if row.Service+"/"+row.Kind == key {
			return row
		}
	}
	return nil
}

// Faults lists the errors of all services: locks that two clients held at once.
func (r *Report) Faults() []string {
	var faults []string
	for _, row := range r.Rows {
		for _, res := range slices.Concat(row.Shared, row.Worked) {
			if res.Overlaps > 0 {
				faults = append(faults, row.Service+"/"+row.Kind+": held by two at once")
			}
		}
	}
	for _, t := range r.Failovers {
		if t.Both && strings.HasPrefix(t.Name, "zkgo") {
			faults = append(faults, t.Name+": held by two at once after the failover")
		}
	}
	return faults
}

func perSecond(r load.Result) float64 {
	if r.Seconds == 0 {
		return 0
	}
	return float64(r.Acquisitions) / r.Seconds
}

// median returns the median of f over the turns, or 0 if there are none.
func median(turns []load.Result, f func(load.Result) float64) float64 {
	if len(turns) == 0 {
		return 0
	}
	var values []float64
	for _, t := range turns {
		values = append(values, f(t))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
