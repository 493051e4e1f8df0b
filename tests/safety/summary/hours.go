package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// period is the sum of consecutive runs that together last some hours.
type period struct {
	from, to time.Duration // of the total time so far
	last     time.Time     // when its last run ended
	*Total
}

// periods adds up runs in the order in which they ended. It begins a new sum when the
// previous one has reached every. Each run belongs to one period as a whole.
func periods(runs []*Run, every time.Duration) []period {
	runs = slices.Clone(runs)
	slices.SortStableFunc(runs, func(a, b *Run) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Seed, b.Seed)) })
	var all []period
	var at time.Duration
	for _, r := range runs {
		if len(all) == 0 || all[len(all)-1].Time >= every {
			all = append(all, period{from: at, Total: NewTotal()})
		}
		last := &all[len(all)-1]
		last.Add(r)
		at = last.from + last.Time
		last.to, last.last = at, r.Ended
	}
	return all
}

// record writes the cumulative record of a suite: a row for each period, and the total.
func record(b *strings.Builder, runs []*Run, every time.Duration) {
	b.WriteString("| hours | runs | void | failed | answered | without a reply | elections | faults | by kind | violations |\n")
	b.WriteString("|---|--:|--:|--:|--:|--:|--:|--:|---|--:|\n")
	for _, p := range periods(runs, every) {
		line(b, fmt.Sprintf("%.1f to %.1f", p.from.Hours(), p.to.Hours()), p.Total)
	}
	all := sum(runs)
	line(b, fmt.Sprintf("in all %.1f", all.Time.Hours()), all)
	b.WriteString("\n")
}

func line(b *strings.Builder, hours string, t *Total) {
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", hours, number(t.Runs), number(t.Void), number(t.Failed), number(t.Answered),
		number(t.Unanswered), number(t.Elections), number(t.AllFaults()), list(t.Faults), number(t.Violations))
}
