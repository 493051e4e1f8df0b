package oracle

import (
	"bytes"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Version is the ZooKeeper release that defines ZooKeeper's behaviour for the
// tests.
const Version = "3.9.5"

// RequireEnv names the variable that makes a test fail instead of being skipped
// if the oracle is missing.
const RequireEnv = "ZKGO_REQUIRE"

//go:embed install.sh
var installScript []byte

// Dir returns the directory with the server's jars, and installs them first if
// they are missing. The process caches the result.
var Dir = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("java"); err != nil {
		return "", fmt.Errorf("oracle: no Java to run ZooKeeper %s with: %w", Version, err)
	}
	cmd := exec.Command("bash", "-s")
	cmd.Stdin = bytes.NewReader(installScript)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("oracle: installing ZooKeeper %s: %w: %s", Version, err, strings.TrimSpace(stderr.String()))
	}
	dir := strings.TrimSpace(string(out))
	if _, err := os.Stat(filepath.Join(dir, "zookeeper-"+Version+".jar")); err != nil {
		return "", fmt.Errorf("oracle: the installation is incomplete: %w", err)
	}
	return dir, nil
})

// Need skips the test if the real server cannot run here. With ZKGO_REQUIRE=1 it
// fails the test instead.
func Need(t testing.TB) {
	t.Helper()
	_, err := Dir()
	switch {
	case err == nil:
	case os.Getenv(RequireEnv) == "1":
		t.Fatalf("%s=1, but the real server is not available: %v", RequireEnv, err)
	default:
		t.Skipf("the real server is not available (set %s=1 to fail instead): %v", RequireEnv, err)
	}
}
