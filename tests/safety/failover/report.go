package failover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/tests/kit/report"
)

// Report is everything that one run measured.
type Report struct {
	report.Frame
	Versions map[string]string
	Results  []Result
}

// NewReport begins a report.
func NewReport() *Report { return &Report{Frame: report.Begin(), Versions: map[string]string{}} }

// Of returns the result of a program's scenario, or nil if there is none.
func (r *Report) Of(program, scenario string) *Result {
	for i := range r.Results {
		if r.Results[i].Program == program && r.Results[i].Scenario == scenario {
			return &r.Results[i]
		}
	}
	return nil
}

// Faults lists zkgo's errors and, if times is set, its times that exceed their limits. We
// don't judge ZooKeeper here.
func (r *Report) Faults(times bool) []string {
	var faults []string
	for _, res := range r.Results {
		if res.Program == "ZooKeeper" {
			continue
		}
		for _, f := range res.Outcome.Faults() {
			faults = append(faults, res.Scenario+": "+f)
		}
		if times {
			faults = append(faults, res.late()...)
		}
	}
	return faults
}

// late lists times that exceed their limits, and unnecessary elections.
func (r *Result) late() []string {
	var late []string
	limits := map[string]float64{"kill": killLimit, "stop": stopLimit}
	if limit, ok := limits[r.Scenario]; ok {
		if m := r.stats(func(in Incident) float64 { return in.NoWrite }).median; m > limit {
			late = append(late, fmt.Sprintf("%s: a median of %.0f ms without writes, more than %.0f", r.Scenario, m, limit))
		}
	}
	if r.Elections > 0 {
		late = append(late, fmt.Sprintf("%s: %d elections that nothing called for", r.Scenario, r.Elections))
	}
	return late
}

// stats are statistics of a list of samples.
type stats struct {
	n                  int
	median, p99, worst float64
}

// of computes the statistics. Without samples all are zero.
func of(samples []float64) stats {
	if len(samples) == 0 {
		return stats{}
	}
	s := slices.Sorted(slices.Values(samples))
	return stats{len(s), s[len(s)/2], s[len(s)*99/100], s[len(s)-1]}
}

// stats returns the statistics of f over all incidents.
func (r *Result) stats(f func(Incident) float64) stats {
	var samples []float64
	for _, in := range r.Incidents {
		samples = append(samples, f(in))
	}
	return of(samples)
}

// String returns the result in one line.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-9s %-8s %5.1f s", r.Program, r.Scenario, r.Took)
	if r.Skipped != "" {
		return b.String() + "  not run: " + r.Skipped
	}
	if len(r.Incidents) > 0 {
		w, e, rd := r.stats(func(i Incident) float64 { return i.NoWrite }), r.stats(func(i Incident) float64 { return i.EveryWriter }),
			r.stats(func(i Incident) float64 { return i.NoRead })
		fmt.Fprintf(&b, "  n=%d no write %.0f/%.0f ms, every writer %.0f/%.0f, no read %.0f/%.0f", w.n, w.median, w.worst, e.median, e.worst, rd.median, rd.worst)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		s := of(r.Values[name])
		fmt.Fprintf(&b, "  %s %.2f/%.2f", name, s.median, s.worst)
	}
	fmt.Fprintf(&b, "  elections %d, writes %d, reads %d, connections %d, errors %v", r.Elections, r.Outcome.Writes, r.Outcome.Reads, r.Outcome.Connections, r.Outcome.Errors)
	if f := r.Outcome.Faults(); len(f) > 0 {
		fmt.Fprintf(&b, "  FAULTS %v", f)
	}
	return b.String()
}
