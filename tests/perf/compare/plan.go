package compare

import (
	"github.com/zkgo/zkgo/internal/bench"
)

// Cell is one line of the matrix: a workload on a number of servers.
type Cell struct {
	Name    string // of the line, in words
	Servers int
	Load    bench.Config               // the load for bench; Work is "" if Measure runs it
	Measure func(*Bed) (Values, error) // for workloads that bench doesn't have
	Wants   []Want
}

// Values are the results of one run of a cell.
type Values map[Metric]float64

// Metric names a measured quantity, with its unit.
type Metric string

// The metrics.
const (
	Rate     Metric = "ops/s"
	P50      Metric = "p50 µs"
	P99      Metric = "p99 µs"
	CPU      Metric = "CPU µs/op"
	Sub      Metric = "sub-ops/s"
	Delivery Metric = "all delivered p50 ms"
	Start    Metric = "start to first answer ms"
	Serving  Metric = "restart to serving ms"
	Reattach Metric = "all re-attached ms"
	RSS      Metric = "RSS MiB"
	PerIdle  Metric = "RSS KiB per session"
	Idle     Metric = "CPU cores idle"
	P999     Metric = "p99.9 µs"
	Added    Metric = "p99.9 added ms"
	Longest  Metric = "longest ms"
)

// moreIsBetter reports whether a higher value of the metric is better.
func (m Metric) moreIsBetter() bool { return m == Rate || m == Sub }

// Want is a target for zkgo.
type Want struct {
	Metric Metric
	// Ratio is the target ratio to ZooKeeper's median: a minimum if more is better, a
	// maximum otherwise; 0 means none.
	Ratio float64
	// Limit bounds zkgo's own median; 0 means none.
	Limit float64
}

func load(work string, conns, window int) bench.Config {
	return bench.Config{Work: work, Conns: conns, Window: window}
}

// Plan returns the matrix, with the targets for servers and clients that share the CPUs or
// that are pinned to different ones.
func Plan(pinned bool) []Cell {
	preloaded := load("load", 64, 16)
	preloaded.Nodes, preloaded.Keep = 1_000_000, true
	cells := []Cell{
		{Name: "get 64×1", Servers: 1, Load: load("get", 64, 1), Wants: []Want{{Metric: CPU, Ratio: 0.45}}},
		{Name: "get 64×64", Servers: 1, Load: load("get", 64, 64), Wants: []Want{{Metric: Rate, Ratio: 10}}},
		{Name: "set 1×1", Servers: 1, Load: load("set", 1, 1), Wants: []Want{{Metric: P50, Ratio: 0.85}}},
		{Name: "set 64×1", Servers: 1, Load: load("set", 64, 1), Wants: []Want{{Metric: Rate, Ratio: 1.6}, {Metric: CPU, Ratio: 0.5}}},
		{Name: "set 64×64", Servers: 1, Load: load("set", 64, 64), Wants: []Want{{Metric: Rate, Ratio: 6}}},
		{Name: "create 64×64", Servers: 1, Load: load("create", 64, 64), Wants: []Want{{Metric: Rate, Ratio: 6}, {Metric: P99, Ratio: 0.25}}},
		{Name: "mixed, 10 % writes, 64×64", Servers: 1, Load: load("mixed", 64, 64), Wants: []Want{{Metric: Rate, Ratio: 6}}},
		{Name: "multi of 10, 64×1", Servers: 1, Load: load("multi", 64, 1), Wants: []Want{{Metric: Sub, Ratio: 2}}},
		{Name: "lock, 8 clients, one each", Servers: 1, Load: load("lock", 8, 1), Wants: []Want{{Metric: Rate, Ratio: 1.5}}},
		{Name: shared, Servers: 1, Load: load("lock-shared", 8, 1), Wants: []Want{{Metric: P50, Ratio: 0.6}}},
		{Name: "one set, 10,000 sessions watch", Servers: 1, Load: load("watch", 10_000, 1), Wants: []Want{{Metric: Delivery, Ratio: 0.55}}},

		{Name: "get 64×1", Servers: 3, Load: load("get", 64, 1), Wants: []Want{{Metric: CPU, Ratio: 0.45}}},
		{Name: oneAtEach, Servers: 3, Load: load("set", 3, 1), Wants: []Want{{Metric: P50, Ratio: 0.85}}},
		{Name: "set 64×1", Servers: 3, Load: load("set", 64, 1), Wants: []Want{{Metric: Rate, Ratio: 2.5}}},
		{Name: "set 64×64", Servers: 3, Load: load("set", 64, 64), Wants: []Want{{Metric: Rate, Ratio: 8}}},
		{Name: "mixed, 10 % writes, 64×64", Servers: 3, Load: load("mixed", 64, 64), Wants: []Want{{Metric: Rate, Ratio: 8}}},

		{Name: "an empty server", Servers: 1, Measure: empty, Wants: []Want{{Metric: Start, Limit: 50}, {Metric: RSS, Limit: 20}}},
		{Name: "an ensemble without clients", Servers: 3, Measure: unused, Wants: []Want{{Metric: Idle, Ratio: 1}}},
		{Name: "10,000 idle sessions", Servers: 1, Measure: idle, Wants: []Want{{Metric: PerIdle, Limit: 8}, {Metric: Idle, Ratio: 0.5}}},
		{Name: "10,000 sessions with 10 watches each come back after a restart", Servers: 1, Measure: reattach, Wants: []Want{{Metric: Reattach, Ratio: 0.5}}},
		{Name: "1,000,000 znodes of 100 B", Servers: 1, Load: preloaded, Measure: million, Wants: []Want{{Metric: RSS, Limit: 320}, {Metric: Serving, Limit: 1300}}},
		{Name: "set 64×1 among 1,000,000 znodes, snapshots under way", Servers: 1, Load: preloaded, Measure: stalls, Wants: []Want{{Metric: Added, Limit: 5}}},
	}
	if pinned {
		for i := range cells {
			cells[i].onSeparateCPUs()
		}
	}
	return cells
}

const (
	shared    = "lock, 8 clients, one for all: hand-off"
	oneAtEach = "set, one connection at each"
)

// onSeparateCPUs sets the targets of a cell for pinned servers and clients: to be ahead of
// ZooKeeper, and in two cells by a margin.
func (c *Cell) onSeparateCPUs() {
	for i, w := range c.Wants {
		if w.Ratio != 0 {
			c.Wants[i].Ratio = 1
		}
	}
	if c.Name == shared || c.Name == oneAtEach {
		c.Wants = []Want{{Metric: P50, Ratio: 0.85}}
	}
}
