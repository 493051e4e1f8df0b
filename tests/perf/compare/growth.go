package compare

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zkgo/zkgo/internal/bench"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// Growth is how the cost of an operation changes with the amount of something.
type Growth struct {
	Name   string `json:"name"`   // of the workload, in words
	Amount string `json:"amount"` // the unit of the amount
	Per    string `json:"per"`    // what one operation is
	// Points are the points of each contender, in order of rising amounts.
	Points map[string][]Point `json:"points"`
}

// Point is the measurement for one amount.
type Point struct {
	N    int     `json:"n"`
	CPU  float64 `json:"cpu_us_per_op"`
	Rate float64 `json:"ops_per_second"`
}

// axis is a growing amount.
type axis struct {
	Growth
	amounts []int
	// most is the maximum amount per contender, for one that has a lower limit.
	most map[string]int
	load func(n int) bench.Config
	// before prepares a server for the load; undo reverts that.
	before func(addr string, n int) (undo func(), err error)
}

// growths returns the curves. ZooKeeper's 2 GiB heap has no room for ten million znodes.
func growths() []axis {
	upTo := func(last int, first ...int) []int {
		for n := first[len(first)-1] * 10; n <= last; n *= 10 {
			first = append(first, n)
		}
		return first
	}
	fixed := func(work string, conns, window int) func(int) bench.Config {
		return func(n int) bench.Config {
			cfg := load(work, conns, window)
			cfg.Nodes, cfg.Keep = n, true
			return cfg
		}
	}
	return []axis{
		{
			Growth: Growth{Name: "half gets, half sets, 64×16", Amount: "znodes", Per: "operation"}, amounts: upTo(10_000_000, 1000),
			most: map[string]int{"ZooKeeper": 1_000_000},
			load: func(n int) bench.Config {
				cfg := fixed("mixed", 64, 16)(n)
				cfg.Writes = 0.5
				return cfg
			},
		},
		{
			Growth: Growth{Name: "create, exists, delete in one directory, 8×16", Amount: "children", Per: "operation"}, amounts: upTo(100_000, 10),
			load: fixed("directory", 8, 16),
		},
		{
			Growth: Growth{Name: "one set, all sessions have a watch there", Amount: "watches", Per: "event, with the request that asks for it"}, amounts: upTo(10_000, 1),
			load: func(n int) bench.Config { return load("watch", n, 1) },
		},
		{
			Growth: Growth{Name: "set, 64×16", Amount: "watches elsewhere", Per: "operation"}, amounts: upTo(1_000_000, 1000),
			load: func(int) bench.Config { return load("set", 64, 16) }, before: watchElsewhere,
		},
		{
			Growth: Growth{Name: "get, all connections, window 1", Amount: "connections", Per: "operation"}, amounts: append(upTo(10_000, 10), 15_000),
			load: func(n int) bench.Config { return load("get", n, 1) },
		},
	}
}

// watchers is how many sessions share the watches of watchElsewhere.
const watchers = 1000

// watchElsewhere opens sessions that together watch n missing znodes.
func watchElsewhere(addr string, n int) (undo func(), err error) {
	all := make([]*process.Client, min(n, watchers))
	undo = func() { hangUp(all) }
	var g errgroup.Group
	g.SetLimit(32)
	for i := range all {
		g.Go(func() (err error) {
			if all[i], err = process.Connect(addr, 0, nil, sessionTimeout); err != nil {
				return err
			}
			set := proto.SetWatches{RelativeZxid: 1 << 62, Data: []string{}, Child: []string{}}
			for j := range n / len(all) {
				set.Exist = append(set.Exist, "/elsewhere/"+strconv.Itoa(i)+"/"+strconv.Itoa(j))
			}
			_, err = all[i].Do(proto.OpSetWatches, &set)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}

// Grows reports whether we draw the curves for a contender. We do for the two contenders
// of the ratios; the log store doesn't affect the curves.
func (c *Contender) Grows() bool { return c.Name == ours || c.Name == reference }

// MeasureGrowth measures the curves with a matching amount. It measures each point several times on
// separate servers, which must speak ZooKeeper's protocol.
func MeasureGrowth(ctx context.Context, contenders []Contender, o Options) (*GrowthReport, error) {
	report := &GrowthReport{Heading: newHeading(contenders, o)}
	defer report.Finish()
	for _, a := range growths() {
		if o.Curves != nil && !o.Curves.MatchString(a.Amount) {
			continue
		}
		g := a.Growth
		points, err := a.measureAll(ctx, contenders, o)
		if err != nil {
			return report, err
		}
		g.Points = points
		report.Curves = append(report.Curves, g)
	}
	return report, nil
}

// measureAll measures a whole curve several times, with the contenders taking turns, so
// that a slow minute of the machine affects several points of one run instead of all runs
// of one point. For each point we keep the run with the median cost.
func (a *axis) measureAll(ctx context.Context, contenders []Contender, o Options) (map[string][]Point, error) {
	curves := make(map[string][]Point)
	for range o.Runs {
		if err := a.measureOnce(ctx, contenders, o, curves); err != nil {
			return nil, err
		}
	}
	for name, points := range curves {
		curves[name] = medians(points)
	}
	return curves, nil
}

// measureOnce adds one point per amount to the curve of each contender that goes that far.
func (a *axis) measureOnce(ctx context.Context, contenders []Contender, o Options, curves map[string][]Point) error {
	for _, n := range a.amounts {
		for _, c := range contenders {
			if most := a.most[c.Name]; most > 0 && n > most || o.Most > 0 && n > o.Most {
				continue
			}
			p, err := a.measure(ctx, c, n, o)
			if err != nil {
				return fmt.Errorf("%s, %s, %d %s: %w", c.Name, a.Name, n, a.Amount, err)
			}
			o.Log(fmt.Sprintf("%-10s %-45s %9d %-17s %8s ops/s, %6s µs/op", c.Name, a.Name, n, a.Amount, number(p.Rate), number(p.CPU)))
			curves[c.Name] = append(curves[c.Name], p)
		}
	}
	return nil
}

// medians keeps the point with the median cost for each amount.
func medians(points []Point) (curve []Point) {
	slices.SortFunc(points, func(p, q Point) int { return cmp.Or(cmp.Compare(p.N, q.N), cmp.Compare(p.CPU, q.CPU)) })
	for len(points) > 0 {
		n := slices.IndexFunc(points, func(p Point) bool { return p.N != points[0].N })
		if n < 0 {
			n = len(points)
		}
		curve, points = append(curve, points[n/2]), points[n:]
	}
	return curve
}

func (a *axis) measure(ctx context.Context, c Contender, n int, o Options) (Point, error) {
	e, stop, err := begin(c, o.Dir, 1)
	if err != nil {
		return Point{}, err
	}
	defer stop()
	if err := warm(ctx, c, e, o); err != nil {
		return Point{}, err
	}
	if a.before != nil {
		undo, err := a.before(e.Servers[0].Addr, n)
		if err != nil {
			return Point{}, err
		}
		defer undo()
	}
	// One operation with many sessions may last longer than the requested duration.
	for d := o.Duration; ; d *= 2 {
		b := c.bed(ctx, e, a.load(n), o)
		b.Load.Duration = d
		r, err := c.run(b)
		switch {
		case err != nil:
			return Point{}, err
		case r.ErrorCount() > 0:
			return Point{}, fmt.Errorf("%d operations, errors: %v", r.Ops, r.Errors)
		case r.Ops > 0:
			return Point{N: n, CPU: *r.CPUPerOp, Rate: r.OpsPerSecond}, nil
		case d > longest:
			return Point{}, fmt.Errorf("no operation ended within %v", d)
		}
	}
}

// longest bounds the duration of a load that completes no operation.
const longest = time.Minute

// flatness returns the ratio of a contender's highest cost per operation to its lowest.
func (g *Growth) flatness(contender string) float64 {
	var costs []float64
	for _, p := range g.Points[contender] {
		costs = append(costs, p.CPU)
	}
	if len(costs) == 0 {
		return 0
	}
	return slices.Max(costs) / slices.Min(costs)
}
