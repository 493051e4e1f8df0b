package compare

import (
	"fmt"
	"math"

	"github.com/zkgo/zkgo/tests/perf/plot"
)

// Plot is a picture for a report.
type Plot struct {
	File  string // its name
	About string // a description
	SVG   string
}

// Plots returns the report's plots that have measurements.
func (r *Report) Plots() (all []Plot) {
	for _, p := range []struct {
		file, about, unit string
		metric, to        Metric
	}{
		{"throughput.svg", "Throughput: more is better", "operations a second, logarithmic", Rate, ""},
		{"latency.svg", "Latency, p50 – p99: less is better", "µs, logarithmic", P50, P99},
		{"cpu.svg", "Processor time of the servers: less is better", "µs an operation, logarithmic", CPU, ""},
	} {
		b := plot.Bars{Title: p.about, Unit: p.unit, Log: true, Series: r.Contenders, Label: number, Groups: r.groups(p.metric, p.to)}
		if len(b.Groups) > 0 {
			all = append(all, Plot{p.file, p.about, b.SVG()})
		}
	}
	return all
}

// groups returns the medians of every cell that has the metric. If to is set, the bars'
// lines end at its median.
func (r *Report) groups(m, to Metric) (all []plot.Group) {
	for _, c := range r.Cells {
		servers := "1 server"
		if c.Servers > 1 {
			servers = fmt.Sprint(c.Servers, " servers")
		}
		g := plot.Group{Label: c.Name + ", " + servers}
		measured := false
		for _, name := range r.Contenders {
			bar := plot.Bar{Value: c.median(name, m)}
			if upper := c.median(name, to); !math.IsNaN(upper) {
				bar.To = upper
			}
			measured = measured || !math.IsNaN(bar.Value)
			g.Bars = append(g.Bars, bar)
		}
		if measured {
			all = append(all, g)
		}
	}
	return all
}
