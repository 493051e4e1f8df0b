package compare

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/bench"
	"github.com/zkgo/zkgo/tests/kit/servers"
)

// A report of made-up figures: where a program has no figure, the table has a dash; all
// other figures are in the table and in the plots.
func TestReport(t *testing.T) {
	t.Parallel()
	cells := []Cell{
		{Name: "set <64×1>", Servers: 1, Load: bench.Config{Work: "set"}, Wants: []Want{{Metric: Rate, Ratio: 2}}},
		{Name: "lock", Servers: 3, Load: bench.Config{Work: "lock"}},
		{Name: "an empty server", Servers: 1, Measure: empty},
	}
	contenders := []Contender{{Name: ours, Version: "zkgo 1"}, {Name: reference, Version: "ZooKeeper 3"}, {Name: "etcd", Version: "etcd 3"}}
	r := newReport(contenders, Options{Runs: 3, Duration: time.Second, Cells: cells})
	for i, rate := range []float64{30_000, 10_000, 20_000} {
		r.add(cells[0], contenders[i], Values{Rate: rate, P50: 100, P99: 2000, CPU: 7})
		if contenders[i].Name != "etcd" {
			r.add(cells[1], contenders[i], Values{Rate: rate})
			r.add(cells[2], contenders[i], Values{RSS: 12})
		}
	}
	for _, want := range []string{
		"| work | servers | | zkgo | ZooKeeper | etcd | zkgo ÷ ZooKeeper | wanted | |\n",
		"| set <64×1> | 1 | ops/s | 30k | 10k | 20k | 3.00 | ≥ 2.00 × | reached |\n",
		"| lock | 3 | ops/s | 30k | 10k | – | 3.00 |  |  |\n",
	} {
		if !strings.Contains(r.Table(), want) {
			t.Errorf("there is no %q in:\n%s", want, r.Table())
		}
	}
	plots := r.Plots()
	if len(plots) != 3 {
		t.Fatalf("%d pictures", len(plots))
	}
	section := r.Section("plots")
	for _, want := range []string{
		"|load|servers|zkgo: ops/s|÷ ZooKeeper|p50|p99|CPU/op|ops/s ÷ etcd|\n",
		"|set <64×1>|1|30k|3.00|1.00|1.00|1.00|1.50|\n",
		"|lock|3|30k|3.00|–|–|–|–|\n",
		"|an empty server|RSS MiB|12.0|12.0|1.00|\n",
	} {
		if !strings.Contains(section, want) {
			t.Errorf("there is no %q in:\n%s", want, section)
		}
	}
	for _, p := range plots {
		if !strings.Contains(section, "("+"plots/"+p.File+")") {
			t.Errorf("the section does not show %s", p.File)
		}
		if lock := strings.Contains(p.SVG, "lock, 3 servers"); lock != (p.File == "throughput.svg") || strings.Contains(p.SVG, "empty") {
			t.Errorf("%s shows cells without what it is about, or lacks some:\n%s", p.File, p.SVG)
		}
		for _, c := range contenders {
			if !strings.Contains(p.SVG, ">"+c.Name+"<") {
				t.Errorf("%s does not name %s", p.File, c.Name)
			}
		}
	}
	if strings.Contains(r.Section(""), "![") {
		t.Error("pictures that were not written")
	}
}

// The worker gets flags only for values that differ from bench's defaults, which it shares.
func TestWorkerArguments(t *testing.T) {
	t.Parallel()
	got := strings.Join(worker{}.arguments(&bench.Config{Work: "mixed", Servers: []string{"a:1", "b:2"}, Conns: 64, Window: 2, Writes: 0.5, Duration: 3 * time.Second, Seed: 1}), " ")
	if want := "-work mixed -servers a:1,b:2 -seed 1 -conns 64 -window 2 -duration 3s -writes 0.5"; got != want {
		t.Errorf("%s\ninstead of\n%s", got, want)
	}
	got = strings.Join(loader{}.arguments(&bench.Config{Work: "set", Servers: []string{"a:1", "b:2"}, PIDs: []int{3, 4}, Keep: true, Nodes: 7, Warmup: -1}), " ")
	if want := "bench set --output json --quiet --server a:1,b:2 --seed 0 --pid 3 --pid 4 --keep-znodes --nodes 7 --warmup -1ns"; got != want {
		t.Errorf("%s\ninstead of\n%s", got, want)
	}
	for _, c := range []struct {
		cell Cell
		can  bool
	}{
		{Cell{Load: load("get", 1, 1)}, true}, {Cell{Load: load("multi", 1, 1)}, true}, {Cell{Load: load("lock", 1, 1)}, false},
		{Cell{Load: load("watch", 1, 1)}, false}, {Cell{Load: load("create", 1, 1), Measure: million}, false},
	} {
		if got := (worker{}).can(&c.cell); got != c.can {
			t.Errorf("%+v: %v", c.cell, got)
		}
	}
}

// follow rejects output that isn't a result.
func TestFollow(t *testing.T) {
	t.Parallel()
	b := &Bed{Ensemble: &servers.Ensemble{}}
	r, err := b.follow(strings.NewReader("begin\nend\n{\"work\":\"get\",\"ops\":5}\n"))
	if err != nil || r.Ops != 5 || r.CPUPerOp == nil {
		t.Errorf("%+v, %v", r, err)
	}
	for _, text := range []string{"", "begin\n", "end\n", "begin\nend\n", "begin\nend\n{"} {
		if r, err := b.follow(strings.NewReader(text)); err == nil {
			t.Errorf("%q: %+v", text, r)
		}
	}
}

// TestMedians: each amount keeps the point with the median cost, sorted by amount.
func TestMedians(t *testing.T) {
	t.Parallel()
	got := medians([]Point{{N: 10, CPU: 3}, {N: 1000, CPU: 5}, {N: 10, CPU: 1}, {N: 1000, CPU: 9}, {N: 10, CPU: 2}, {N: 1000, CPU: 7}})
	if want := []Point{{N: 10, CPU: 2}, {N: 1000, CPU: 7}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := medians(nil); got != nil {
		t.Errorf("of nothing %v", got)
	}
}
