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
	"github.com/zkgo/zkgo/tests/failover"
)

// worker is the program that puts bench's loads on etcd; see its package, etcd/.
type worker struct{ binary string }

// etcd is the contender that does not speak ZooKeeper's protocol. Its worker is built
// into dir, with a client that comes from the network the first time.
func etcd(dir string) (Contender, error) {
	version, err := failover.EtcdVersion()
	if err != nil {
		return Contender{}, err
	}
	w := worker{filepath.Join(dir, "etcd-worker")}
	if err := w.build(); err != nil {
		return Contender{}, err
	}
	return Contender{Name: "etcd", Version: version, start: failover.StartEtcd, run: w.run, can: w.can}, nil
}

func (w worker) build() error {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/zkgo/zkgo").Output()
	if err != nil {
		return fmt.Errorf("looking for the module: %w", err)
	}
	cmd := exec.Command("go", "build", "-o", w.binary, ".")
	cmd.Dir = filepath.Join(strings.TrimSpace(string(module)), "tests", "compare", "etcd")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building etcd's worker: %w: %s", err, out)
	}
	return nil
}

// can: etcd has no sessions that watch or lock at the price of a connection; what it
// has for locks is measured by tests/lockbench.
func (worker) can(c *Cell) bool {
	return c.Measure == nil && slices.Contains([]string{"get", "set", "create", "mixed", "multi"}, c.Load.Work)
}

// arguments are a load's for the worker, whose defaults are those of bench.
func (worker) arguments(cfg *bench.Config) []string {
	args := []string{"-work", cfg.Work, "-servers", strings.Join(cfg.Servers, ","), "-seed", strconv.FormatUint(cfg.Seed, 10)}
	return append(args, differing("-", cfg)...)
}

// run has the worker do the bed's load, and adds the servers' processor time.
func (w worker) run(b *Bed) (*bench.Result, error) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, w.binary, w.arguments(&b.Load)...)
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
		cancel() // nobody reads what it prints
	}
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("etcd's worker: %w: %s", err, &complaint)
	}
	return r, nil
}

// follow reads what a worker prints, and looks at the servers' processor time when
// it says that it begins and ends to count.
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
