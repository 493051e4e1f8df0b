package limits

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// compareEnsembles is compare with a server of an ensemble.
func compareEnsembles(t *testing.T, lines []string, play func(t *testing.T, addr string, s *transcript)) {
	t.Helper()
	var theirs, ours transcript
	t.Run("ZooKeeper", func(t *testing.T) {
		play(t, oracle.Ensemble(t, 2, oracle.Options{Config: lines})[1].Addr(), &theirs)
	})
	t.Run("zkgo", func(t *testing.T) {
		// For zkgo, an ensemble of one server is enough.
		ports := must.Get(oracle.FreePorts(2))(t)
		dir := t.TempDir()
		must.Do(t, os.WriteFile(filepath.Join(dir, "myid"), []byte("1\n"), 0o600))
		member := "server.1=127.0.0.1:" + strconv.Itoa(ports[0]) + ":" + strconv.Itoa(ports[1])
		all := append([]string{"standaloneEnabled=false", "initLimit=10", "syncLimit=5", member}, lines...)
		play(t, process.Start(t, dir, sets(all)...).Addr, &ours)
	})
	if len(theirs) == 0 || strings.Join(theirs, "\n") != strings.Join(ours, "\n") {
		t.Errorf("ZooKeeper:\n%s\nzkgo:\n%s", strings.Join(theirs, "\n"), strings.Join(ours, "\n"))
	}
	t.Logf("both:\n%s", strings.Join(ours, "\n"))
}
