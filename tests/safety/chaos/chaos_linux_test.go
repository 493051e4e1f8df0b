package chaos

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/netns"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/report"
	"github.com/zkgo/zkgo/tests/safety/summary"
)

// These flags are for `go test ./tests/safety/chaos -args …` and make chaos.
var ( //nolint:gochecknoglobals // flags
	duration = flag.Duration("duration", 0, "how long clients work at least, in runs of two minutes; 0 skips the test, or with ZKGO_REQUIRE=1 means 20 s")
	seed     = flag.Uint64("seed", 0, "of faults, load and their order, counted up from run to run; 0 for one from the clock")
	servers  = flag.Int("servers", 3, "number of servers")
	store    = flag.String("store", "wal", "log store: wal or bolt")
	network  = flag.String("net", Proxies, "network between servers and clients: proxy, or netns, which takes root and has the faults of gray networks too")
	promise  = flag.String("faults", "", "faults that have to be seen in every run, separated by commas; empty for all")
	place    = flag.String("dir", "", "where to keep the directory of a run that failed; empty for the system's temporary directory")
	figures  = flag.String("summary", "", "file to which each run appends what it has shown, for tests/safety/summary/total")
	keep     = flag.Bool("keep", false, "keep the directory of a run without failure, too")
)

// longest is the maximum duration of a run. We limit it because checking a history needs memory.
const longest = 2 * time.Minute

func TestChaos(t *testing.T) {
	needed(t)
	if *network == Namespaces {
		netns.Needed(t)
	}
	t.Parallel()
	if *duration == 0 {
		*duration = 20 * time.Second
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano() / 1e6)
	}
	sum := summary.NewTotal()
	for left := *duration; left > 0 && sum.Failed == 0; left -= longest {
		t.Run(fmt.Sprintf("seed=%d", *seed), func(t *testing.T) {
			run := oneRun(t, min(left, longest), *network, *promise)
			sum.Add(run)
			if *figures != "" {
				must.Do(t, report.Append(*figures, run))
			}
		})
		*seed++
	}
	t.Logf("in all: %d runs, %d void, %d failed; %v, %d requests answered, %d elections, %d faults, %d violations",
		sum.Runs, sum.Void, sum.Failed, sum.Time.Round(time.Second), sum.Answered, sum.Elections, sum.AllFaults(), sum.Violations)
}

// TestGrayChaos is a short run with gray network faults, in addition to TestChaos, which runs all
// gray faults with -net=netns.
func TestGrayChaos(t *testing.T) {
	needed(t)
	if *network == Namespaces {
		t.Skip("TestChaos has these faults with -net=netns")
	}
	netns.Needed(t)
	t.Parallel()
	oneRun(t, 15*time.Second, Namespaces, "forget-connections,forget-server,forget-clients,large-lost-leader,thin-link,kill-leader")
}

// oneRun runs an ensemble once and checks the clients' observations. faults lists the faults that
// must be seen, separated by commas; empty: all.
func oneRun(t *testing.T, d time.Duration, network, faults string) *summary.Run {
	t.Helper()
	dir := must.Get(os.MkdirTemp(*place, "zkgo-chaos-"))(t)
	cfg := Config{Duration: d, Logf: t.Logf, Options: Options{
		Bin: process.Binary(t), Dir: dir, Servers: *servers, Store: *store, SnapCount: 2000, Seed: *seed, Network: network}}
	if faults != "" {
		cfg.Promise = strings.Split(faults, ",")
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
		t.Logf("again: make chaos SEED=%d SERVERS=%d STORE=%s DURATION=%v NET=%s FAULTS=%s", *seed, *servers, *store, d, network, faults)
	} else if !*keep {
		os.RemoveAll(dir) //nolint:errcheck // a leftover in the temp dir
	}
	return summed(report, network, err, v)
}

// summed returns the result of a run in the form that tests/safety/summary keeps.
func summed(report *Report, network string, err error, v *checkers.Verdict) *summary.Run {
	run := &summary.Run{Suite: "chaos", Layout: fmt.Sprintf("%d servers, %s, %s", *servers, *store, network), Seed: *seed, Ended: time.Now(), Seconds: report.Took.Seconds(),
		Answered: report.Answered, Unanswered: report.Unknown, Elections: report.Elections, Faults: report.Faults}
	run.Judge(v)
	switch {
	case errors.Is(err, ErrVoid):
		run.Void = []string{err.Error()}
	case err != nil:
		run.DidNotHeal, _, _ = strings.Cut(err.Error(), "\n")
	}
	return run
}
