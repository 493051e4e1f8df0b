package chaos

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/checkers"
	"github.com/zkgo/zkgo/tests/process"
)

// What `go test ./tests/chaos -args …` and make chaos can choose.
var ( //nolint:gochecknoglobals // flags
	duration = flag.Duration("duration", 0, "how long clients work at least, in runs of two minutes; 0 skips the test, or with ZKGO_REQUIRE=1 means 20 s")
	seed     = flag.Uint64("seed", 0, "of faults, load and their order, counted up from run to run; 0 for one from the clock")
	servers  = flag.Int("servers", 3, "number of servers")
	store    = flag.String("store", "wal", "log store: wal or bolt")
	promise  = flag.String("faults", "", "faults that have to be seen in every run, separated by commas; empty for all")
	place    = flag.String("dir", "", "where to keep the directory of a run that failed; empty for the system's temporary directory")
	keep     = flag.Bool("keep", false, "keep the directory of a run without failure, too")
)

// longest is how long a run is at most: checking a history takes memory.
const longest = 2 * time.Minute

func TestChaos(t *testing.T) {
	needed(t)
	t.Parallel()
	if *duration == 0 {
		*duration = 20 * time.Second
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano() / 1e6)
	}
	sum := Report{Faults: map[string]int{}}
	for left := *duration; left > 0 && !t.Failed(); left -= longest {
		t.Run(fmt.Sprintf("seed=%d", *seed), func(t *testing.T) { sum.add(oneRun(t, min(left, longest))) })
		*seed++
	}
	t.Logf("in all: %v", &sum)
}

// oneRun runs an ensemble once and checks what the clients saw.
func oneRun(t *testing.T, d time.Duration) *Report {
	t.Helper()
	dir, err := os.MkdirTemp(*place, "zkgo-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	cfg := Config{Duration: d, Logf: t.Logf, Options: Options{
		Bin: process.Binary(t), Dir: dir, Servers: *servers, Store: *store, SnapCount: 2000, Seed: *seed}}
	if *promise != "" {
		cfg.Promise = strings.Split(*promise, ",")
	}
	report, err := Run(cfg)
	if err != nil {
		t.Error(err)
	}
	v := checkers.Check(report.History, checkers.Options{Search: time.Minute})
	t.Logf("%v\n%v", report, v)
	if !v.OK() {
		t.Error("a promise was broken")
	}
	if t.Failed() {
		t.Logf("the servers' logs and data, the history and the trace are in %s", dir)
		t.Logf("again: make chaos SEED=%d SERVERS=%d STORE=%s DURATION=%v FAULTS=%s", *seed, *servers, *store, d, *promise)
	} else if !*keep {
		os.RemoveAll(dir) //nolint:errcheck // a leftover in the temp dir
	}
	return report
}
