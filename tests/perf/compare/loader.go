package compare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/bench"
	"github.com/zkgo/zkgo/tests/kit/servers"
)

// loader is a zkgo binary that runs loads on servers of ZooKeeper's kind: "zkgo bench" in a
// separate process, as a user who compares servers would run it. We don't run the loads in
// this process, because they would use the default runtime settings and the heap left over
// from earlier measurements.
type loader struct {
	binary string
	cpus   string // for taskset
}

// run implements Contender.
func (l loader) run(b *Bed) (*bench.Result, error) {
	var complaint bytes.Buffer
	line := servers.Pinned(l.cpus, append([]string{l.binary}, l.arguments(&b.Load)...))
	cmd := exec.CommandContext(b.ctx, line[0], line[1:]...)
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("zkgo bench: %w: %s", err, &complaint)
	}
	r := &bench.Result{}
	if err := json.Unmarshal(out, r); err != nil {
		return nil, fmt.Errorf("what zkgo bench prints: %w", err)
	}
	return r, nil
}

// arguments returns a load's arguments for zkgo bench, without those equal to its defaults.
func (loader) arguments(cfg *bench.Config) []string {
	args := []string{"bench", cfg.Work, "--output", "json", "--quiet", "--server", strings.Join(cfg.Servers, ","), "--seed", strconv.FormatUint(cfg.Seed, 10)}
	for _, pid := range cfg.PIDs {
		args = append(args, "--pid", strconv.Itoa(pid))
	}
	if cfg.Keep {
		args = append(args, "--keep-znodes")
	}
	return append(args, differing("--", cfg)...)
}

// differing returns the flags, prefixed with dashes, for values that differ from bench's
// defaults.
func differing(dashes string, cfg *bench.Config) (args []string) {
	for _, n := range []struct {
		flag  string
		value int
	}{{"conns", cfg.Conns}, {"window", cfg.Window}, {"size", cfg.Size}, {"nodes", cfg.Nodes}, {"ops", cfg.Ops}} {
		if n.value != 0 {
			args = append(args, dashes+n.flag, strconv.Itoa(n.value))
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"warmup", cfg.Warmup}, {"duration", cfg.Duration}} {
		if d.value != 0 {
			args = append(args, dashes+d.flag, d.value.String())
		}
	}
	if cfg.Writes != 0 {
		args = append(args, dashes+"writes", strconv.FormatFloat(cfg.Writes, 'g', -1, 64))
	}
	return args
}
