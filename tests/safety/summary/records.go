package summary

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Record contains the runs of one suite at one commit.
type Record struct {
	Commit string
	Runs   []*Run
}

// maxFailures is how many failures of a commit WriteRecords lists.
const maxFailures = 3

// WriteRecords writes the cumulative record of a suite as Markdown: a table with a row for
// each commit, the rarest kinds of faults, and the failures.
func WriteRecords(w io.Writer, suite string, records []Record) error {
	records = slices.DeleteFunc(slices.Clone(records), func(r Record) bool { return len(r.Runs) == 0 })
	if len(records) == 0 {
		return nil
	}
	slices.SortStableFunc(records, func(a, b Record) int { return began(a.Runs).Compare(began(b.Runs)) })
	var runs []*Run
	for _, r := range records {
		runs = append(runs, r.Runs...)
	}
	all := sum(runs)
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", strings.ToUpper(suite[:1])+suite[1:])
	b.WriteString("|commit|ended|hours|runs|void|failed|answered|without a reply|elections|faults|violations|\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, r := range records {
		compact(&b, r.Commit, ended(r.Runs).UTC().Format("01-02"), sum(r.Runs))
	}
	compact(&b, "all", "", all)
	fmt.Fprintf(&b, "\n%d kinds of faults. The rarest: %s.\n\n", len(all.Faults), rarest(all.Faults))
	var failures []string
	for _, r := range records {
		all := sum(r.Runs).Failures
		for _, f := range all[:min(len(all), maxFailures)] {
			failures = append(failures, r.Commit+", "+strings.TrimPrefix(f, suite+", "))
		}
		if more := len(all) - maxFailures; more > 0 {
			failures = append(failures, fmt.Sprintf("%s: %d more", r.Commit, more))
		}
	}
	paragraph(&b, "Failed", slices.Compact(failures))
	paragraph(&b, "Undecided", all.Undecided)
	_, err := io.WriteString(w, b.String())
	return err
}

// rarest formats the three kinds of faults that happened least often.
func rarest(faults map[string]int) string {
	kinds := slices.SortedFunc(maps.Keys(faults), func(a, b string) int {
		return cmp.Or(cmp.Compare(faults[a], faults[b]), cmp.Compare(a, b))
	})
	var parts []string
	for _, k := range kinds[:min(3, len(kinds))] {
		parts = append(parts, k+" "+number(faults[k]))
	}
	return strings.Join(parts, ", ")
}

// compact writes one row.
func compact(b *strings.Builder, commit, ended string, t *Total) {
	fmt.Fprintf(b, "|%s|%s|%.1f|%s|%s|%s|%s|%s|%s|%s|%s|\n", commit, ended, t.Time.Hours(), number(t.Runs), number(t.Void), number(t.Failed),
		number(t.Answered), number(t.Unanswered), number(t.Elections), number(t.AllFaults()), number(t.Violations))
}

// began returns when the first of the runs ended.
func began(runs []*Run) time.Time {
	return slices.MinFunc(runs, func(a, b *Run) int { return a.Ended.Compare(b.Ended) }).Ended
}

// ended returns when the last of the runs ended.
func ended(runs []*Run) time.Time {
	return slices.MaxFunc(runs, func(a, b *Run) int { return a.Ended.Compare(b.Ended) }).Ended
}
