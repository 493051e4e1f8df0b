package compare

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// The whole matrix should work, with every program. We don't judge times.
func TestMatrix(t *testing.T) {
	process.Needed(t)
	t.Parallel() // the times don't matter
	say := func(text string) { t.Log(text) }
	contenders := must.Get(Contenders(process.Binary(t), t.TempDir(), CPUs{}, say))(t)
	cells := Plan(false)
	for i := range cells {
		cells[i].Load.Conns = min(cells[i].Load.Conns, 100)
		cells[i].Load.Nodes = min(cells[i].Load.Nodes, 10_000)
	}
	report := must.Get(Measure(t.Context(), contenders, Options{Runs: 1, Duration: time.Second / 4, Small: true, Dir: t.TempDir(), Cells: cells, Log: say}))(t)
	for _, l := range report.lines() {
		if l.want != nil && math.IsNaN(l.missed) {
			t.Errorf("%s: %s was not measured", l.cell.Name, l.metric)
		}
	}
	for _, c := range contenders {
		for i, cell := range cells {
			if got := report.Cells[i].Samples[c.Name]; c.can(&cell) != (len(got) > 0) {
				t.Errorf("%s, %s: measured %v", c.Name, cell.Name, got)
			}
		}
	}
	if n := strings.Count(report.Table(), "\n"); n < len(cells) {
		t.Errorf("%d lines:\n%s", n, report.Table())
	}
}

// We should be able to draw every curve for every program.
func TestGrowth(t *testing.T) {
	process.Needed(t)
	t.Parallel() // the times don't matter
	say := func(text string) { t.Log(text) }
	contenders := must.Get(Contenders(process.Binary(t), t.TempDir(), CPUs{}, say))(t)
	contenders = slices.DeleteFunc(contenders, func(c Contender) bool { return !c.Grows() })
	report := must.Get(MeasureGrowth(t.Context(), contenders, Options{Runs: 1, Duration: time.Second / 4, Small: true, Dir: t.TempDir(), Most: 1000, Log: say}))(t)
	for _, g := range report.Curves {
		for _, c := range contenders {
			if f := g.flatness(c.Name); f < 1 {
				t.Errorf("%s, %s: %v", g.Name, c.Name, g.Points[c.Name])
			}
		}
	}
}
