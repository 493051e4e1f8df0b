package compare

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/bench"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/servers"
)

// worker is the program that runs bench's loads on etcd; see its package, etcd/.
type worker struct {
	binary string
	cpus   string // for taskset
}

// etcd returns the contender that doesn't speak ZooKeeper's protocol. It builds the worker
// into dir; the first build downloads etcd's client.
func etcd(dir string, on CPUs) (Contender, error) {
	version, err := servers.EtcdVersion()
	if err != nil {
		return Contender{}, err
	}
	w := worker{filepath.Join(dir, "etcd-worker"), on.Clients}
	if err := w.build(); err != nil {
		return Contender{}, err
	}
	start := func(dir string, n int) (*servers.Ensemble, error) { return servers.StartEtcd(dir, n, on.Servers) }
	return Contender{Name: "etcd", Version: version, start: start, run: w.run, can: w.can}, nil
}

func (w worker) build() error {
	module, err := process.Root()
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-o", w.binary, ".")
	cmd.Dir = filepath.Join(module, "tests", "perf", "compare", "etcd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building etcd's worker: %w: %s", err, out)
	}
	return nil
}

// can excludes watches and locks, because etcd has no sessions that provide them at the
// cost of a connection. We measure etcd's locks in tests/perf/lockbench.
func (worker) can(c *Cell) bool {
	return c.Measure == nil && slices.Contains([]string{"get", "set", "create", "mixed", "multi"}, c.Load.Work)
}

// arguments returns a load's flags for the worker, which has the same defaults as bench.
func (worker) arguments(cfg *bench.Config) []string {
	args := []string{"-work", cfg.Work, "-servers", strings.Join(cfg.Servers, ","), "-seed", strconv.FormatUint(cfg.Seed, 10)}
	return append(args, differing("-", cfg)...)
}

// run runs the bed's load with the worker and adds the servers' processor time.
func (w worker) run(b *Bed) (*bench.Result, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var complaint bytes.Buffer
	line := servers.Pinned(w.cpus, append([]string{w.binary}, w.arguments(&b.Load)...))
	cmd := exec.CommandContext(ctx, line[0], line[1:]...)
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, err := b.follow(out)
	if err != nil {
		cancel() // the rest of the worker's output is ignored
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("etcd's worker: %w: %s", err, &complaint)
	}
	return r, nil
}

// follow reads a worker's output, and reads the servers' processor time when the worker
// reports that it begins and ends counting.
func (b *Bed) follow(out io.Reader) (*bench.Result, error) {
	var used [2]time.Duration
	lines := bufio.NewReader(out)
	for i, want := range []string{"begin\n", "end\n"} {
		got, err := lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if got != want {
			return nil, fmt.Errorf("it says %q instead of %q", got, want)
		}
		if used[i], err = b.processorTime(); err != nil {
			return nil, err
		}
	}
	var r bench.Result
	if err := json.NewDecoder(lines).Decode(&r); err != nil {
		return nil, err
	}
	if r.Ops > 0 {
		cpu := float64((used[1] - used[0]).Microseconds()) / float64(r.Ops)
		r.CPUPerOp = &cpu
	}
	return &r, nil
}
