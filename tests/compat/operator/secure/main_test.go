package secure

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
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

// need skips the test unless the environment asks for it, and fails it if a tool is missing.
func need(t *testing.T, tools ...string) {
	t.Helper()
	if os.Getenv("ZKGO_REQUIRE") != "1" {
		t.Skip("runs what a server's operator has installed; set ZKGO_REQUIRE=1")
	}
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("ZKGO_REQUIRE=1, but %s is not installed", tool)
		}
	}
}

// needOracle is need for tests with the real ZooKeeper.
func needOracle(t *testing.T) {
	t.Helper()
	need(t, "java")
	if os.Getenv("ZKGO_LIVE") != "1" {
		t.Skip("runs the real ZooKeeper; set ZKGO_LIVE=1")
	}
	oracle.Need(t)
}

// file writes a file of the test and returns its path.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// sets returns the zkgo arguments that set keys of zoo.cfg.
func sets(lines ...string) []string {
	var args []string
	for _, l := range lines {
		args = append(args, "--set", l)
	}
	return args
}
