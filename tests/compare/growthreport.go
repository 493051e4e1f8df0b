package compare

import (
	"fmt"
	"path"
	"runtime"
	"strings"
	"time"

	"github.com/zkgo/zkgo/tests/plot"
)

// GrowthReport holds the curves of one run.
type GrowthReport struct {
	Date       time.Time         `json:"date"`
	Machine    string            `json:"machine"`
	Go         string            `json:"go"`
	Versions   map[string]string `json:"versions"` // by contender
	Runs       int               `json:"runs"`
	Seconds    float64           `json:"seconds"` // of each run of a point
	Contenders []string          `json:"contenders"`
	Curves     []Growth          `json:"curves"`
}

func newGrowthReport(contenders []Contender, o Options) *GrowthReport {
	r := &GrowthReport{Date: time.Now().UTC().Truncate(time.Second), Machine: machine(),
		Go: runtime.Version(), Versions: make(map[string]string), Runs: o.Runs, Seconds: o.Duration.Seconds()}
	for _, c := range contenders {
		r.Contenders = append(r.Contenders, c.Name)
		r.Versions[c.Name] = c.Version
	}
	return r
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

// Section returns the report for a page whose plots are in directory plots.
func (r *GrowthReport) Section(plots string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s, %s; each point is the median of %d runs of %g s, each on a server of its own.\n"+
		"Below: processor time of the server, in µs, and in the last column how many times the dearest point costs what the cheapest does.\n\n",
		r.Date.Format(time.DateOnly), r.Machine, r.Go, r.Runs, r.Seconds)
	for _, g := range r.Curves {
		fmt.Fprintf(&b, "**%s**; µs an %s:\n\n| %s |", g.Name, g.Per, g.Amount)
		widest := g.widest()
		for _, p := range widest {
			fmt.Fprintf(&b, " %s |", number(float64(p.N)))
		}
		b.WriteString(" |\n|---|" + strings.Repeat("--:|", len(widest)+1) + "\n")
		for _, name := range r.Contenders {
			fmt.Fprintf(&b, "| %s |", name)
			for i := range widest {
				if i < len(g.Points[name]) {
					fmt.Fprintf(&b, " %s |", number(g.Points[name][i].CPU))
				} else {
					b.WriteString(" – |")
				}
			}
			fmt.Fprintf(&b, " %s |\n", number(g.flatness(name)))
		}
		b.WriteString("\n")
	}
	if plots != "" {
		for _, p := range r.Plots() {
			fmt.Fprintf(&b, "![%s](%s)\n", p.About, path.Join(plots, p.File))
		}
	}
	return b.String()
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
