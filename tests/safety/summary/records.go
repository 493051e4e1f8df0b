package summary

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Record holds the runs of one suite at one commit.
type Record struct {
	Commit string
	Runs   []*Run
}

// WriteRecords writes the cumulative record of a suite as Markdown: a table with a row for
// each commit and period, the sums by kind of fault, and the failures. The cells with
// faults by kind hold counts only, in the order of the list of kinds, so that a row
// stays short.
func WriteRecords(w io.Writer, suite string, records []Record, every time.Duration) error {
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
	kinds := slices.Sorted(maps.Keys(all.Faults))
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", strings.ToUpper(suite[:1])+suite[1:])
	b.WriteString("|commit|ended|hours|runs|void|failed|answered|without a reply|elections|faults|by kind|violations|\n" +
		"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|\n")
	for _, r := range records {
		for _, p := range periods(r.Runs, every) {
			compact(&b, r.Commit, p.last.UTC().Format("01-02"), p.Total, kinds)
		}
	}
	compact(&b, "all", "", all, kinds)
	fmt.Fprintf(&b, "\nFaults by kind, in the order of the cells, with their sums: %s.\n\n", list(all.Faults))
	layouts, parts := by(runs, func(r *Run) string { return r.Layout })
	var ensembles []string
	for _, l := range layouts {
		t := sum(parts[l])
		ensembles = append(ensembles, fmt.Sprintf("%s: %s runs, %s", l, number(t.Runs), hours(t.Time)))
	}
	fmt.Fprintf(&b, "Ensembles: %s.\n\n", strings.Join(ensembles, "; "))
	var failures []string
	for _, r := range records {
		for _, f := range sum(r.Runs).Failures {
			failures = append(failures, r.Commit+", "+strings.TrimPrefix(f, suite+", "))
		}
	}
	paragraph(&b, "Failed", slices.Compact(failures))
	paragraph(&b, "Undecided", all.Undecided)
	_, err := io.WriteString(w, b.String())
	return err
}

// compact writes one row.
func compact(b *strings.Builder, commit, ended string, t *Total, kinds []string) {
	var counts []string
	for _, k := range kinds {
		counts = append(counts, strconv.Itoa(t.Faults[k]))
	}
	fmt.Fprintf(b, "|%s|%s|%.1f|%s|%s|%s|%s|%s|%s|%s|%s|%s|\n", commit, ended, t.Time.Hours(), number(t.Runs), number(t.Void), number(t.Failed),
		number(t.Answered), number(t.Unanswered), number(t.Elections), number(t.AllFaults()), strings.Join(counts, "/"), number(t.Violations))
}

// began returns when the first of the runs ended.
func began(runs []*Run) time.Time {
	return slices.MinFunc(runs, func(a, b *Run) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Seed, b.Seed)) }).Ended
}
