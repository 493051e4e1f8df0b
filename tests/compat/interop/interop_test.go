// Package interop runs other projects' clients, and their own test suites, against a zkgo
// process: go-zookeeper's and Kazoo's tests, ZooKeeper's shell and C client, Curator's
// recipes. They need Java, Python and the network, so run.sh does the work and plain
// "go test" skips it.
//
// The package imports nothing of zkgo, because it tests the binary.
package interop

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// TestSuites runs every suite of run.sh as a subtest.
func TestSuites(t *testing.T) {
	if os.Getenv("ZKGO_INTEROP") != "1" {
		t.Skip("needs Java, Python and the package registries: set ZKGO_INTEROP=1, or run tests/compat/interop/run.sh")
	}
	for _, suite := range suites(t) {
		t.Run(suite, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "./run.sh", suite).CombinedOutput()
			t.Logf("%s", out)
			if err != nil {
				t.Fatalf("run.sh %s: %v", suite, err)
			}
			if !bytes.Contains(out, []byte("suite "+suite+" on ")) {
				t.Fatalf("run.sh %s did not say how the suite ended", suite)
			}
		})
	}
}

// TestShims checks that the scripts that the harnesses start are executable: without the
// mode bit, the servers would never start.
func TestShims(t *testing.T) {
	for _, name := range []string{"run.sh", "shim/java", "shim/server.sh", "shim/zkServer.sh"} {
		info := must.Get(os.Stat(name))(t)
		if info.Mode()&0o111 == 0 && os.PathSeparator == '/' {
			t.Errorf("%s is not executable", name)
		}
	}
}

// suites returns the names of run.sh's suites.
func suites(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "./run.sh", "--list").Output()
	if err != nil {
		t.Fatalf("run.sh --list: %v", err)
	}
	var names []string
	for line := range strings.Lines(string(out)) {
		names = append(names, strings.Fields(line)[0])
	}
	if len(names) == 0 {
		t.Fatal("run.sh --list names no suites")
	}
	return names
}
