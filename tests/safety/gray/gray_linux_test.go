package gray

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/netns"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/servers"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// slack is added to a limit on a busy machine: several ensembles and their clients share it. The
// command measures without slack.
const slack = 3 * time.Second

// TestLimits runs the short scenarios with zkgo, several at a time, and checks
// what clients noticed against the limits.
func TestLimits(t *testing.T) {
	process.Needed(t)
	netns.Needed(t)
	p := servers.Zkgo(process.Binary(t))
	for name, only := range map[string][]string{
		"forwards and entries": {"forward stream", "entries to both followers"},
		"reports and opened":   {"liveness stream", "all connections that both followers have opened"},
		"one or all":           {"any single connection", "all connections between servers"},
		"any two":              {"any two connections"},
		"large packets lost":   {"of 200 bytes and more; values of 3 kB"},
		"slow link":            {"400 kbit/s, T = 10 s"},
		"large ones to one":    {"packets of 200 bytes"},
		"away":                 {"the leader killed for 22 s"},
		"refusals":             {"asked for a session"},
		"sessions move":        {"two of five servers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			rows, err := Measure(p, dir, Plan{Short: true, Only: only, GivenUp: 25 * time.Second}, func(r Row) { t.Log(r) })
			if err != nil {
				t.Error(err)
			}
			if len(rows) == 0 {
				t.Error("nothing was measured")
			}
			for _, r := range rows {
				for _, f := range r.Faults(slack) {
					t.Error(f)
				}
			}
			if t.Failed() {
				showLogs(t, dir)
			}
		})
	}
}

// showLogs logs the last output of the servers.
func showLogs(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*", "server*", "out"))
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		t.Logf("%s:\n%s", name, text[max(0, len(text)-6000):])
	}
}
