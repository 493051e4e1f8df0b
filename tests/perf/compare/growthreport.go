package compare

import (
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/perf/plot"
)

// GrowthReport contains the curves of one run.
type GrowthReport struct {
	Heading
	Curves []Growth
}

// Plots returns the plots of the curves.
func (r *GrowthReport) Plots() (all []Plot) {
	for _, g := range r.Curves {
		chart := plot.Lines{Title: g.Name, X: g.Amount, Y: "server's CPU, µs an " + g.Per, LogX: true}
		for _, name := range r.Contenders {
			s := plot.Series{Name: name}
			for _, p := range g.Points[name] {
				s.Points = append(s.Points, plot.Point{X: float64(p.N), Y: p.CPU})
			}
			chart.Series = append(chart.Series, s)
		}
		all = append(all, Plot{"growth-" + strings.ReplaceAll(g.Amount, " ", "-") + ".svg", g.Name + ", by the number of " + g.Amount, chart.SVG()})
	}
	return all
}

// Section returns the report for a page. Its plots are in directory plots.
func (r *GrowthReport) Section(plots string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %d CPUs, %s; each point is the median of %d runs of %g s, each on a server of its own. Processor time of the server.\n\n",
		r.Date.Format(time.DateOnly), r.Machine, r.CPUs, r.Go, r.Runs, r.Seconds)
	b.WriteString("|work|grows|from|to|")
	for _, name := range r.Contenders {
		fmt.Fprintf(&b, "%s: µs|×|", name)
	}
	b.WriteString("\n|---|---|--:|--:|" + strings.Repeat("--:|--:|", len(r.Contenders)) + "\n")
	for _, g := range r.Curves {
		widest := g.widest()
		if len(widest) == 0 {
			continue
		}
		fmt.Fprintf(&b, "|%s|%s|%s|%s|", g.Name, g.Amount, amount(widest[0].N), amount(widest[len(widest)-1].N))
		for _, name := range r.Contenders {
			fmt.Fprintf(&b, "%s|%s|", g.span(name, widest[len(widest)-1].N), number(g.flatness(name)))
		}
		b.WriteString("\n")
	}
	if plots != "" {
		b.WriteString("\n")
		for _, p := range r.Plots() {
			fmt.Fprintf(&b, "![%s](%s)\n", p.About, path.Join(plots, p.File))
		}
	}
	return b.String()
}

// span returns a contender's cost at its first and last points, and where its curve ends
// if that is before last.
func (g *Growth) span(name string, last int) string {
	points := g.Points[name]
	if len(points) == 0 {
		return "–"
	}
	end := points[len(points)-1]
	text := number(points[0].CPU) + "–" + number(end.CPU)
	if end.N < last {
		text += " (" + amount(end.N) + ")"
	}
	return text
}

// amount formats a round number.
func amount(n int) string {
	switch {
	case n >= 1_000_000 && n%1_000_000 == 0:
		return fmt.Sprintf("%dM", n/1_000_000)
	case n >= 1000 && n%1000 == 0:
		return fmt.Sprintf("%dk", n/1000)
	}
	return fmt.Sprint(n)
}

// widest returns the points of the contender that went furthest.
func (g *Growth) widest() (most []Point) {
	for _, p := range g.Points {
		if len(p) > len(most) {
			most = p
		}
	}
	return most
}
