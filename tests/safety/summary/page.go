package summary

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// name identifies the run.
func (r *Run) name() string { return fmt.Sprintf("%s, seed %d, %s", r.Suite, r.Seed, r.Layout) }

// Write writes the sum of runs as Markdown, each suite separately. If every is above 0, it
// also writes how the sum developed: a row for each period of that length.
func Write(w io.Writer, runs []*Run, every time.Duration) error {
	var b strings.Builder
	suites, parts := by(runs, func(r *Run) string { return r.Suite })
	for _, suite := range suites {
		section(&b, suite, parts[suite])
		if every > 0 {
			record(&b, parts[suite], every)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// section writes the results of one suite.
func section(b *strings.Builder, suite string, runs []*Run) {
	all := sum(runs)
	first, last := runs[0].Ended, runs[0].Ended
	for _, r := range runs {
		if r.Ended.Before(first) {
			first = r.Ended
		}
		if r.Ended.After(last) {
			last = r.Ended
		}
	}
	fmt.Fprintf(b, "### %s, %s to %s\n\n", suite, first.UTC().Format("2006-01-02 15:04"), last.UTC().Format("2006-01-02 15:04"))
	b.WriteString("| ensemble | runs | void | failed | time | answered | without a reply | elections | faults | violations |\n|---|---|---|---|---|---|---|---|---|---|\n")
	layouts, parts := by(runs, func(r *Run) string { return r.Layout })
	for _, layout := range layouts {
		row(b, layout, sum(parts[layout]))
	}
	row(b, "in all", all)
	b.WriteString("\n| | |\n|---|---|\n")
	fmt.Fprintf(b, "| faults | %s |\n", list(all.Faults))
	if len(all.Seen) > 0 {
		fmt.Fprintf(b, "| seen besides | %s |\n", list(all.Seen))
	}
	checked(b, all)
	b.WriteString("\n")
	paragraph(b, "Failed", all.Failures)
	paragraph(b, "Undecided", all.Undecided)
}

func row(b *strings.Builder, what string, t *Total) {
	fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", what, number(t.Runs), number(t.Void), number(t.Failed), hours(t.Time),
		number(t.Answered), number(t.Unanswered), number(t.Elections), number(t.AllFaults()), number(t.Violations))
}

// checked writes a row for each checker.
func checked(b *strings.Builder, t *Total) {
	of := make(map[string]map[string]int)
	for k, n := range t.Checked {
		checker, what, _ := strings.Cut(k, ": ")
		if of[checker] == nil {
			of[checker] = make(map[string]int)
		}
		of[checker][what] += n
	}
	for _, checker := range slices.Sorted(maps.Keys(of)) {
		fmt.Fprintf(b, "| %s | %s |\n", checker, list(of[checker]))
	}
}

func paragraph(b *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n\n", title)
	for _, l := range lines {
		fmt.Fprintf(b, "- %s\n", l)
	}
	b.WriteString("\n")
}

// list formats counts by name, sorted by name.
func list(m map[string]int) string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, k+" "+number(m[k]))
	}
	return strings.Join(parts, ", ")
}

// number formats a count with thousands separators.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// hours formats a duration with a suitable precision.
func hours(d time.Duration) string {
	switch {
	case d < 10*time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Round(time.Minute).Minutes()))
	}
	return fmt.Sprintf("%.1f h", d.Hours())
}
