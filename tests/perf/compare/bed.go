package compare

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/zkgo/zkgo/internal/bench"
	"github.com/zkgo/zkgo/tests/kit/servers"
)

// Contender is a program with its settings.
type Contender struct {
	Name    string
	Version string
	// start starts n servers in a directory.
	start func(dir string, n int) (*servers.Ensemble, error)
	// run runs the load of a bed once.
	run func(b *Bed) (*bench.Result, error)
	// can reports whether this program has an equivalent of the cell.
	can func(c *Cell) bool
}

// CPUs are the CPUs that servers and clients run on, as lists for taskset. "" means all.
type CPUs struct{ Servers, Clients string }

// Contenders returns zkgo with each log store, ZooKeeper, and etcd if this machine has it
// and its client can be built into dir. If not, say gets the reason.
func Contenders(zkgo, dir string, on CPUs, say func(text string)) ([]Contender, error) {
	theirs, err := servers.ZooKeeper("2g")
	if err != nil {
		return nil, err
	}
	theirs = theirs.On(on.Servers)
	ours, load := servers.Zkgo(zkgo).On(on.Servers), loader{zkgo, on.Clients}
	all := []Contender{
		ofItsKind("zkgo", ours, load),
		ofItsKind("zkgo bolt", ours, load, "logStore=bolt"),
		ofItsKind(reference, theirs, load),
	}
	other, err := etcd(dir, on)
	if err != nil {
		say("without etcd: " + err.Error())
		return all, nil
	}
	return append(all, other), nil
}

// ofItsKind returns a contender that reads zoo.cfg, with lines added to it, and speaks
// ZooKeeper's protocol.
func ofItsKind(name string, p servers.Program, load loader, lines ...string) Contender {
	return Contender{
		Name: name, Version: p.Version,
		start: func(dir string, n int) (*servers.Ensemble, error) { return servers.Start(p, dir, n, lines...) },
		run:   load.run,
		can:   func(*Cell) bool { return true },
	}
}

// Bed is one measurement of one cell for one contender: freshly started, empty servers
// and a load.
type Bed struct {
	*servers.Ensemble
	Load bench.Config // the cell's load, with servers and processes filled in
	by   Contender
	part int // divisor for the cell's own durations and session counts
	ctx  context.Context
}

// bed returns a bed for a load on servers of this contender.
func (c Contender) bed(ctx context.Context, e *servers.Ensemble, cfg bench.Config, o Options) *Bed {
	for _, s := range e.Servers {
		cfg.Servers = append(cfg.Servers, s.Addr)
		cfg.PIDs = append(cfg.PIDs, s.PID())
	}
	part := 1
	if o.Small {
		part, cfg.Warmup = 10, 50*time.Millisecond
	}
	return &Bed{Ensemble: e, Load: cfg, by: c, part: part, ctx: ctx}
}

// lasts scales a duration that a cell sets itself.
func (b *Bed) lasts(d time.Duration) time.Duration { return d / time.Duration(b.part) }

// sessions returns the number of sessions for cells that measure sessions.
func (b *Bed) sessions() int { return 10_000 / b.part }

// put runs another load on the servers.
func (b *Bed) put(cfg bench.Config) (*bench.Result, error) {
	other := *b
	other.Load = cfg
	return b.by.run(&other)
}

// begin starts a contender's servers in a new directory.
func begin(c Contender, dir string, n int) (*servers.Ensemble, func(), error) {
	home, err := os.MkdirTemp(dir, "servers-")
	if err != nil {
		return nil, nil, err
	}
	e, err := c.start(home, n)
	if err != nil {
		os.RemoveAll(home)
		return nil, nil, err
	}
	return e, func() {
		e.Kill()
		os.RemoveAll(home)
	}, nil
}

// warm runs a load on the servers until the JIT and the allocator reach their steady state.
func warm(ctx context.Context, c Contender, e *servers.Ensemble, o Options) error {
	if o.Warm == 0 {
		return nil
	}
	b := c.bed(ctx, e, load("mixed", 16, 16), o)
	b.Load.Writes, b.Load.Duration = 0.5, o.Warm
	_, err := c.run(b)
	return err
}

// ask runs the cell's load on the servers once.
func (b *Bed) ask() (Values, error) {
	r, err := b.by.run(b)
	if err != nil {
		return nil, err
	}
	return values(r)
}

// values converts a result. It returns an error if any operation failed.
func values(r *bench.Result) (Values, error) {
	if n := r.ErrorCount(); n > 0 {
		return nil, fmt.Errorf("%s: %d errors: %v", r.Work, n, r.Errors)
	}
	v := Values{Rate: r.OpsPerSecond}
	if r.Ops > 0 { // otherwise there is no latency
		v[P50], v[P99] = r.Latency.P50, r.Latency.P99
	}
	if r.CPUPerOp != nil {
		v[CPU] = *r.CPUPerOp
	}
	for _, f := range r.Figures {
		switch f.Name {
		case "sub-operations":
			v[Sub] = f.Value
		case "all have received it, p50":
			v[Delivery] = f.Value
		}
	}
	return v, nil
}
