package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/internal/version"
	"github.com/zkgo/zkgo/internal/zoocfg"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVar); role != "" {
		play(role)
	}
	for _, v := range os.Environ() { // no settings of the user's
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "ZKGO_") && name != "ZKGO_BINARY" {
			os.Unsetenv(name) //nolint:errcheck // the name comes from the environment
		}
	}
	os.Setenv("ZKGO_CONFIG", filepath.Join(os.TempDir(), "no-zkgo-config")) //nolint:errcheck // the name is valid
	goleak.VerifyTestMain(m)
}

const patience = 60 * time.Second

// zkgo runs a command line and waits for its end.
func zkgo(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, diag bytes.Buffer
	err = run(ctx, args, strings.NewReader(""), &out, &diag)
	return out.String(), diag.String(), err
}

func TestHelpHasExamples(t *testing.T) {
	t.Parallel()
	for _, cmd := range []string{"", "server", "testserver", "version"} {
		out, _, err := zkgo(t, append(strings.Fields(cmd), "--help")...)
		if err != nil || !strings.Contains(out, "Examples:\n  zkgo ") {
			t.Errorf("zkgo %s --help: %v\n%s", cmd, err, out)
		}
	}
}

// Port 0 means any free port instead of the default.
func TestClientPortFlag(t *testing.T) {
	t.Parallel()
	for port, want := range map[int]int{unset: zoocfg.Default().ClientPort, 0: 0, 2345: 2345} {
		z, err := (&serverFlags{clientPort: port}).zooCfg()
		if err != nil || z.ClientPort != want {
			t.Errorf("%d: port %d, %v, want %d", port, z.ClientPort, err, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for _, arg := range []string{"version", "--version"} {
		out, _, err := zkgo(t, arg)
		if err != nil || out != version.Line()+"\n" || !strings.Contains(out, "(ZooKeeper 3.9") || !strings.Contains(out, ", commit ") {
			t.Errorf("%s: %q, %v", arg, out, err)
		}
	}
	out, _, err := zkgo(t, "version", "-o", "json")
	var v map[string]string
	if err != nil || json.Unmarshal([]byte(out), &v) != nil || !strings.Contains(version.Line(), v["go"]+", commit "+cmp.Or(v["commit"], "unknown")+", "+v["time"][:len("2026-11-28")]) {
		t.Errorf("%s, %v", out, err)
	}
}

func TestWrongCommandLines(t *testing.T) {
	t.Parallel()
	cfg := filepath.Join(t.TempDir(), "zoo.cfg")
	if err := os.WriteFile(cfg, []byte("clientPort=2181\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"serve", `unknown command "serve"`},
		{"server --no-such-flag", "no-such-flag"},
		{"server /no/such/zoo.cfg", "/no/such/zoo.cfg"},
		{"server " + cfg, "dataDir"},
		{"server a.cfg --config b.cfg", "two configuration files"},
		{"server --set tickTime", "key=value"},
		{"server --set tickTime=soon", "tickTime"},
		{"server --log-level loud", "loud"},
		{"server --log-format xml", "xml"},
		{"version now", "now"},
	} {
		out, _, err := zkgo(t, strings.Fields(c.args)...)
		if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
			t.Errorf("zkgo %s: %v, want something about %q; stdout %q", c.args, err, c.want, out)
		}
	}
}

// lockedBuffer is a log that can be read while it's being written.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// eventually polls for a condition, unless the command ends.
func eventually(t *testing.T, what string, ok func() bool, ended <-chan error) {
	t.Helper()
	err := wait.For(patience, what, func() (bool, error) {
		select {
		case err := <-ended:
			return false, fmt.Errorf("the command ended before: %w", err)
		default:
			return ok(), nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A server runs until it's told to stop, and prints its addresses to stderr.
func TestServerRunsUntilItIsStopped(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var log lockedBuffer
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"server", "--data-dir", t.TempDir(), "--set", "clientPortAddress=127.0.0.1",
			"--set", "clientPort=0", "--set", "admin.enableServer=false", "--log-format", "json"}, strings.NewReader(""), &out, &log)
	}()
	eventually(t, "the server serves", func() bool { return strings.Contains(log.String(), "serves clients") }, ended)
	_, rest, _ := strings.Cut(log.String(), `"addresses":"`)
	addr, _, _ := strings.Cut(rest, `"`)
	if srvr, err := process.Word(addr, "srvr", patience); err != nil || !strings.HasPrefix(srvr, "Zookeeper version") {
		t.Errorf("%q, %v", srvr, err)
	}
	stop()
	if err := <-ended; err != nil || out.Len() != 0 {
		t.Errorf("stopped with %v, stdout %q", err, out.String())
	}
}
