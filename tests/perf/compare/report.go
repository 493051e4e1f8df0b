package compare

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/tests/kit/report"
)

// Report contains the results of a run of the matrix.
type Report struct {
	Heading
	Cells []*CellReport
}

// Heading is what reports of both kinds begin with.
type Heading struct {
	report.Frame
	Versions   map[string]string // by contender
	Runs       int
	Seconds    float64 // of each load
	Contenders []string
}

func newHeading(contenders []Contender, o Options) Heading {
	h := Heading{Frame: report.Begin(), Versions: make(map[string]string), Runs: o.Runs, Seconds: o.Duration.Seconds()}
	for _, c := range contenders {
		h.Contenders = append(h.Contenders, c.Name)
		h.Versions[c.Name] = c.Version
	}
	return h
}

// CellReport contains the samples of a cell.
type CellReport struct {
	Name    string `json:"name"`
	Servers int    `json:"servers"`
	// Samples are the values of each run, by contender and metric.
	Samples map[string]map[Metric][]float64 `json:"samples"`

	wants []Want
}

func newReport(contenders []Contender, o Options) *Report {
	r := &Report{Heading: newHeading(contenders, o)}
	for _, c := range o.Cells {
		r.Cells = append(r.Cells, &CellReport{Name: c.Name, Servers: c.Servers, Samples: make(map[string]map[Metric][]float64), wants: c.Wants})
	}
	return r
}

func (r *Report) add(cell Cell, c Contender, v Values) {
	for _, row := range r.Cells {
		if row.Name != cell.Name || row.Servers != cell.Servers {
			continue
		}
		if row.Samples[c.Name] == nil {
			row.Samples[c.Name] = make(map[Metric][]float64)
		}
		for m, x := range v {
			row.Samples[c.Name][m] = append(row.Samples[c.Name][m], x)
		}
	}
}

// String formats the values in one line.
func (v Values) String() string {
	var parts []string
	for _, m := range slices.Sorted(maps.Keys(v)) {
		parts = append(parts, number(v[m])+" "+string(m))
	}
	return strings.Join(parts, ", ")
}

// median returns the median of a contender's runs, or NaN if there are none.
func (c *CellReport) median(contender string, m Metric) float64 {
	s := slices.Sorted(slices.Values(c.Samples[contender][m]))
	if len(s) == 0 {
		return math.NaN()
	}
	return s[len(s)/2]
}

// number formats a figure with three digits.
func number(x float64) string {
	switch {
	case math.IsNaN(x):
		return "–"
	case x >= 1e6:
		return fmt.Sprintf("%.2fM", x/1e6)
	case x >= 1e4:
		return fmt.Sprintf("%.0fk", x/1e3)
	case x >= 1e3:
		return fmt.Sprintf("%.1fk", x/1e3)
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	case x >= 0.1:
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.4f", x)
}

// line is one metric of a cell, for the table.
type line struct {
	cell   *CellReport
	metric Metric
	want   *Want
	ratio  float64 // zkgo's value relative to ZooKeeper's
	missed float64 // how far zkgo is from its target, as a factor; at most 1 means that zkgo meets it
}

// reference is the contender that the ratios compare with; ours is the compared one.
const ours, reference = "zkgo", "ZooKeeper"

func (r *Report) lines() (all []line) {
	for _, c := range r.Cells {
		metrics := make(map[Metric]bool)
		for _, s := range c.Samples {
			for m := range s {
				metrics[m] = true
			}
		}
		for _, m := range slices.Sorted(maps.Keys(metrics)) {
			l := line{cell: c, metric: m, ratio: c.median(ours, m) / c.median(reference, m)}
			for i, w := range c.wants {
				if w.Metric == m {
					l.want = &c.wants[i]
					l.missed = l.distance()
				}
			}
			all = append(all, l)
		}
	}
	return all
}

func (l *line) distance() float64 {
	switch {
	case l.want.Limit > 0:
		return l.cell.median(ours, l.metric) / l.want.Limit
	case l.metric.moreIsBetter():
		return l.want.Ratio / l.ratio
	}
	return l.ratio / l.want.Ratio
}

// Table returns the matrix in Markdown: first the metrics with a target, the largest misses at the
// top, then all others.
func (r *Report) Table() string {
	var wanted, rest []line
	for _, l := range r.lines() {
		if l.want != nil {
			wanted = append(wanted, l)
		} else {
			rest = append(rest, l)
		}
	}
	slices.SortStableFunc(wanted, func(a, b line) int {
		return int(math.Copysign(1, b.missed-a.missed))
	})
	var b strings.Builder
	b.WriteString("| work | servers | | " + strings.Join(r.Contenders, " | ") + " | zkgo ÷ ZooKeeper | wanted | |\n|---|--:|---|" + strings.Repeat("--:|", len(r.Contenders)+1) + "---|---|\n")
	for _, l := range slices.Concat(wanted, rest) {
		fmt.Fprintf(&b, "| %s | %d | %s |", l.cell.Name, l.cell.Servers, l.metric)
		for _, c := range r.Contenders {
			fmt.Fprintf(&b, " %s |", l.cell.spread(c, l.metric))
		}
		fmt.Fprintf(&b, " %s | %s |\n", number(l.ratio), l.verdict())
	}
	return b.String()
}

// spread returns the median with the minimum and the maximum.
func (c *CellReport) spread(contender string, m Metric) string {
	s := c.Samples[contender][m]
	if len(s) == 0 {
		return "–"
	}
	if len(s) == 1 {
		return number(s[0])
	}
	return fmt.Sprintf("**%s** (%s–%s)", number(c.median(contender, m)), number(slices.Min(s)), number(slices.Max(s)))
}

func (l *line) verdict() string {
	if l.want == nil {
		return " | "
	}
	text := fmt.Sprintf("≤ %s ×", number(l.want.Ratio))
	if l.want.Limit > 0 {
		text = "≤ " + number(l.want.Limit)
	} else if l.metric.moreIsBetter() {
		text = fmt.Sprintf("≥ %s ×", number(l.want.Ratio))
	}
	if l.missed <= 1 {
		return text + " | reached"
	}
	return text + " | **missed**"
}
