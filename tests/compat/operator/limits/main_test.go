package limits

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// patience bounds every wait; the tests measure no times.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

func need(t *testing.T) {
	t.Helper()
	if os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("runs servers as processes; set ZKGO_REQUIRE=1")
	}
}

func needOracle(t *testing.T) {
	t.Helper()
	need(t)
	if os.Getenv("ZKGO_LIVE") != "1" {
		t.Skip("runs the real ZooKeeper; set ZKGO_LIVE=1")
	}
	oracle.Need(t)
}

// sets returns the zkgo arguments that set keys of zoo.cfg.
func sets(lines []string) []string {
	args := []string{"--set", "4lw.commands.whitelist=*"}
	for _, l := range lines {
		args = append(args, "--set", l)
	}
	return args
}

// transcript lists the observations of a scenario.
type transcript []string

func (s *transcript) note(format string, args ...any) { *s = append(*s, fmt.Sprintf(format, args...)) }

// compare plays a scenario against ZooKeeper and zkgo with the same configuration lines,
// and expects the same transcript.
func compare(t *testing.T, lines []string, jvm []string, play func(t *testing.T, addr string, s *transcript)) {
	t.Helper()
	var theirs, ours transcript
	t.Run("ZooKeeper", func(t *testing.T) {
		play(t, oracle.Start(t, oracle.Options{Config: lines, JVM: jvm}).Addr(), &theirs)
	})
	for _, arg := range jvm {
		lines = append(lines, strings.TrimPrefix(arg, "-D"))
	}
	t.Run("zkgo", func(t *testing.T) {
		play(t, process.Start(t, t.TempDir(), sets(lines)...).Addr, &ours)
	})
	if len(theirs) == 0 || strings.Join(theirs, "\n") != strings.Join(ours, "\n") {
		t.Errorf("ZooKeeper:\n%s\nzkgo:\n%s", strings.Join(theirs, "\n"), strings.Join(ours, "\n"))
	}
	t.Logf("both:\n%s", strings.Join(ours, "\n"))
}
