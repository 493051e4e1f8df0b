package chaos

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/checkers"
	"github.com/zkgo/zkgo/tests/process"
)

// What `go test ./tests/chaos -args …` and make chaos can choose.
var ( //nolint:gochecknoglobals // flags
	duration = flag.Duration("duration", 0, "how long clients work at least; 0 skips the test unless ZKGO_REQUIRE is set")
	seed     = flag.Uint64("seed", 0, "of faults, load and their order; 0 for one from the clock")
	servers  = flag.Int("servers", 3, "number of servers")
	store    = flag.String("store", "wal", "log store: wal or bolt")
	promise  = flag.String("faults", "", "faults that have to be seen, separated by commas; empty for all")
	keep     = flag.Bool("keep", false, "keep the directory of a run without failure, too")
)

func TestChaos(t *testing.T) {
	if *duration == 0 {
		t.Skip("takes minutes: make chaos, or -args -duration=2m")
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	dir, err := os.MkdirTemp("", "zkgo-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seed %d, everything is in %s", *seed, dir)
	cfg := Config{Duration: *duration, Logf: t.Logf, Options: Options{
		Bin: process.Binary(t), Dir: dir, Servers: *servers, Store: *store, SnapCount: 2000, Seed: *seed}}
	if *promise != "" {
		cfg.Promise = strings.Split(*promise, ",")
	}
	report, err := Run(cfg)
	if err != nil {
		t.Error(err)
	}
	if report != nil {
		t.Log(report)
		v := checkers.Check(report.History, checkers.Options{})
		t.Logf("\n%v", v)
		if !v.OK() {
			t.Error("a promise was broken")
		}
	}
	if t.Failed() {
		t.Logf("the servers' logs and data, the history and the trace are in %s", dir)
		t.Logf("again: make chaos SEED=%d SERVERS=%d STORE=%s DURATION=%v", *seed, *servers, *store, *duration)
		return
	}
	if !*keep {
		os.RemoveAll(filepath.Clean(dir)) //nolint:errcheck // a leftover in the temp dir
	}
}
