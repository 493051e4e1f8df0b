package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/tests/kit/report"
	"github.com/zkgo/zkgo/tests/safety/summary"
)

var ( //nolint:gochecknoglobals // flags
	seeds   = flag.Int("sim.seeds", 12, "how many seeds to run, from sim.seed on")
	seed    = flag.Uint64("sim.seed", 1, "the first seed")
	minutes = flag.Int("sim.minutes", 10, "simulated minutes of each run")
	repeat  = flag.Int("sim.repeat", 1, "how often to run each seed")
	only    = flag.String("sim.faults", "", "kinds of fault, separated by commas; empty: all")
	live    = flag.Bool("sim.live", false, "write the traces to the standard error while they are made")
	out     = flag.String("sim.out", "", "where failed runs leave their traces")
	figures = flag.String("sim.summary", "", "file to which each run appends what it has shown, for tests/safety/summary/total")
)

// layoutOf returns the layout of a seed's cluster.
func layoutOf(seed uint64) Layout {
	r := rnd(seed, 5)
	l := Layout{Voters: 3, Store: raftlog.WAL}
	if r.IntN(5) == 0 {
		l.Voters = 5
	}
	if r.IntN(3) == 0 {
		l.Observers = 1
	}
	if r.IntN(5) == 0 {
		l.Store = raftlog.Bolt
	}
	return l
}

// simulate performs one run and judges it.
func simulate(t *testing.T, o Options) (r *Result) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { r = Run(o) })
	r.Judge()
	return r
}

// total sums up the results of many runs.
type total struct {
	mu sync.Mutex
	*summary.Total
}

// add adds a run, also to the file that -sim.summary names.
func (s *total) add(t *testing.T, r *Result) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	run := r.summary()
	s.Add(run)
	if *figures == "" {
		return
	}
	if err := report.Append(*figures, run); err != nil {
		t.Error(err)
	}
}

// TestMain makes garbage collection rarer: a run is short and its heap is small.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}

// TestSeeds injects faults into ensembles, as each seed determines.
func TestSeeds(t *testing.T) {
	n := *seeds
	switch {
	case raced:
		n = min(n, 1) // a minute
	case testing.Short():
		n = min(n, 2)
	}
	sum := &total{Total: summary.NewTotal()}
	t.Run("seed", func(t *testing.T) {
		for i := range n {
			for again := range *repeat {
				s := *seed + uint64(i)
				t.Run(fmt.Sprintf("%d-%d", s, again), func(t *testing.T) {
					t.Parallel()
					sum.run(t, s)
				})
			}
		}
	})
	t.Logf("%d runs, %d of them void, %d failed; %v simulated in the others, %d operations, %d elections",
		sum.Runs, sum.Void, sum.Failed, sum.Time.Round(time.Minute), sum.Answered, sum.Elections)
	for _, m := range []map[string]int{sum.Faults, sum.Seen, sum.Checked} {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			t.Logf("%8d %s", m[k], k)
		}
	}
	if sum.Runs > 4 && sum.Void > sum.Runs/4 {
		t.Errorf("%d of %d runs show nothing", sum.Void, sum.Runs)
	}
}

// run performs the run of a seed.
func (s *total) run(t *testing.T, seed uint64) {
	o := Options{Seed: seed, Minutes: *minutes, Layout: layoutOf(seed), Out: *out}
	if *only != "" {
		o.Faults = strings.Split(*only, ",")
	}
	if *live {
		o.Live = os.Stderr
	}
	r := simulate(t, o)
	s.add(t, r)
	t.Logf("%+v: %v simulated, %d operations, %d elections, void: %v", o.Layout, r.Simulated.Round(time.Second), r.Ops, r.Elections, r.Void)
	for _, v := range r.Violations {
		t.Errorf("%s", v)
	}
	if len(r.Violations) > 0 {
		t.Logf("trace: %s; again: go test ./tests/safety/sim -run TestSeeds -sim.seed=%d -sim.seeds=1 -sim.repeat=20", r.Trace, seed)
	}
}
