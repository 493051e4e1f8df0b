package compare

import (
	"context"
	"fmt"
	"os"

	"github.com/zkgo/zkgo/bench"
	"github.com/zkgo/zkgo/tests/failover"
)

// Contender is a program with its settings.
type Contender struct {
	Name    string
	Program failover.Program
	Lines   []string // of zoo.cfg
}

// Contenders are zkgo with each log store, and ZooKeeper.
func Contenders(zkgo string) ([]Contender, error) {
	theirs, err := failover.ZooKeeper("2g")
	if err != nil {
		return nil, err
	}
	ours := failover.Zkgo(zkgo)
	return []Contender{
		{Name: "zkgo", Program: ours},
		{Name: "zkgo bolt", Program: ours, Lines: []string{"logStore=bolt"}},
		{Name: "ZooKeeper", Program: theirs},
	}, nil
}

// Bed is where one cell of one contender is measured once: servers that run, freshly
// started with nothing in them.
type Bed struct {
	*failover.Ensemble
	Load bench.Config // the cell's, with servers and processes
	ctx  context.Context
}

// servers starts a contender in a directory of its own.
func servers(c Contender, dir string, n int) (*failover.Ensemble, func(), error) {
	home, err := os.MkdirTemp(dir, "servers-")
	if err != nil {
		return nil, nil, err
	}
	e, err := failover.StartServers(c.Program, home, n, c.Lines...)
	if err != nil {
		os.RemoveAll(home)
		return nil, nil, err
	}
	return e, func() {
		e.Kill()
		os.RemoveAll(home)
	}, nil
}

// aim completes a load for the servers.
func aim(cfg bench.Config, e *failover.Ensemble) bench.Config {
	for _, s := range e.Servers {
		cfg.Servers = append(cfg.Servers, s.Addr)
		cfg.PIDs = append(cfg.PIDs, s.PID())
	}
	return cfg
}

// warm gives a server the load that a JIT and an allocator need to be what they are
// in the long run.
func warm(ctx context.Context, e *failover.Ensemble, o Options) error {
	cfg := aim(load("mixed", 16, 16), e)
	cfg.Writes, cfg.Duration = 0.5, o.Warm
	_, err := bench.Run(ctx, cfg)
	return err
}

// ask runs a cell's load once.
func ask(ctx context.Context, cfg bench.Config) (Values, error) {
	r, err := bench.Run(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if n := r.ErrorCount(); n > 0 {
		return nil, fmt.Errorf("%s: %d errors: %v", cfg.Work, n, r.Errors)
	}
	v := Values{Rate: r.OpsPerSecond, P50: r.Latency.P50, P99: r.Latency.P99}
	if r.CPUPerOp != nil {
		v[CPU] = *r.CPUPerOp
	}
	for _, f := range r.Figures {
		switch f.Name {
		case "sub-operations":
			v[Sub] = f.Value
		case "all have heard of it, p50":
			v[Delivery] = f.Value
		}
	}
	return v, nil
}
