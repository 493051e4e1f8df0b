package compare

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Section returns the report for a page: ratios to ZooKeeper, and the targets that were
// missed. All figures are in the JSON file and in Table. plots is the directory of the
// plots, as the page must link it; "" if they were not written.
func (r *Report) Section(plots string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %d CPUs, %s; the median of %d runs of %g s for each cell. ", r.Date.Format(time.DateOnly), r.Machine, r.CPUs, r.Go, r.Runs, r.Seconds)
	var versions []string
	for _, c := range r.Contenders {
		if v := r.Versions[c]; !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	b.WriteString(strings.Join(versions, "; ") + ".\n\n")
	if missed := r.missed(); len(missed) > 0 {
		b.WriteString("Targets missed: " + strings.Join(missed, "; ") + ". All others are met.\n\n")
	}
	r.loads(&b)
	r.others(&b)
	if plots != "" {
		for _, p := range r.Plots() {
			fmt.Fprintf(&b, "\n![%s](%s)\n", p.About, path.Join(plots, p.File))
		}
	}
	return b.String()
}

// missed lists the targets that zkgo missed.
func (r *Report) missed() (all []string) {
	for _, l := range r.lines() {
		if l.want != nil && l.missed > 1 {
			target, _, _ := strings.Cut(l.verdict(), " |")
			all = append(all, fmt.Sprintf("%s, %s (%s, wanted %s)", l.cell.Name, l.metric, number(l.ratio), target))
		}
	}
	return all
}

// loads writes the table of the cells with a rate: zkgo's rate, and ratios to ZooKeeper.
func (r *Report) loads(b *strings.Builder) {
	etcd := slices.Contains(r.Contenders, "etcd")
	b.WriteString("|load|servers|zkgo: ops/s|÷ ZooKeeper|p50|p99|CPU/op|")
	if etcd {
		b.WriteString("ops/s ÷ etcd|")
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", 6))
	if etcd {
		b.WriteString("--:|")
	}
	b.WriteString("\n")
	for _, c := range r.Cells {
		if len(c.Samples[ours][Rate]) == 0 {
			continue
		}
		fmt.Fprintf(b, "|%s|%d|%s|", c.Name, c.Servers, number(c.median(ours, Rate)))
		for _, m := range []Metric{Rate, P50, P99, CPU} {
			fmt.Fprintf(b, "%s|", number(c.median(ours, m)/c.median(reference, m)))
		}
		if etcd {
			fmt.Fprintf(b, "%s|", number(c.median(ours, Rate)/c.median("etcd", Rate)))
		}
		b.WriteString("\n")
	}
}

// others writes the table of all other metrics.
func (r *Report) others(b *strings.Builder) {
	general := []Metric{Rate, P50, P99, CPU, Sub, P999}
	b.WriteString("\n|what||zkgo|ZooKeeper|ratio|\n|---|---|--:|--:|--:|\n")
	for _, c := range r.Cells {
		for _, m := range slices.Sorted(maps.Keys(c.Samples[ours])) {
			if slices.Contains(general, m) {
				continue
			}
			theirs := c.median(reference, m)
			fmt.Fprintf(b, "|%s|%s|%s|%s|%s|\n", c.Name, m, number(c.median(ours, m)), number(theirs), number(c.median(ours, m)/theirs))
		}
	}
}
