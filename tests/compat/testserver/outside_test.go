package testserver

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

const (
	mostModules = 12         // third-party modules that a module with zktest may need
	mostBytes   = 14_000_000 // of its test binary
)

// outsideTest is the whole test of a module that uses zktest.
const outsideTest = `package jobs

import (
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestWorker(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := zs.Client(t)
	if _, err := c.Create(t.Context(), "/worker", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	zs.ExpireSession(c.Session().ID)
	if zs.Exists("/worker") {
		t.Error("the worker is still there")
	}
}

func TestJob(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 3)
	cl.Server(1).Seed(map[string]string{"/jobs/1": "resize"})
	if data, _, err := cl.Client(t).Get(t.Context(), "/jobs/1"); err != nil || string(data) != "resize" {
		t.Errorf("%q %v", data, err)
	}
	if err := cl.Client(t).Delete(t.Context(), "/jobs/1", client.AnyVersion); err != nil {
		t.Error(err)
	}
	cl.Server(1).WaitGone("/jobs/1")
}
`

// TestOutsideModule: a module that imports zktest should stay light. We build one like its author,
// and count the modules that go mod tidy requires, the linked packages, and the bytes of the binary
// that go test runs, which has no debug information.
func TestOutsideModule(t *testing.T) {
	t.Parallel()
	process.Needed(t)
	dir := t.TempDir()
	root := must.Get(filepath.Abs("../../.."))(t)
	env := []string{"GOFLAGS=-mod=mod", "GOWORK=off"}
	run := func(name string, args ...string) string {
		t.Helper()
		out, err := command(t, dir, env, name, args...)
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, args, err, out)
		}
		return out
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "jobs_test.go"), []byte(outsideTest), 0o600))
	run("go", "mod", "init", "example.com/jobs")
	run("go", "mod", "edit", "-require", "github.com/zkgo/zkgo@v0.0.0", "-replace", "github.com/zkgo/zkgo="+root)
	run("go", "mod", "tidy")

	var file struct{ Require []struct{ Path string } }
	must.Do(t, json.Unmarshal([]byte(run("go", "mod", "edit", "-json")), &file))
	var required []string
	for _, r := range file.Require {
		if r.Path != "github.com/zkgo/zkgo" {
			required = append(required, r.Path)
		}
	}
	linked := strings.Fields(run("go", "list", "-deps", "-test", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}", "."))
	slices.Sort(linked)
	linked = slices.DeleteFunc(slices.Compact(linked), func(path string) bool { return path == "github.com/zkgo/zkgo" })
	binary := filepath.Join(dir, "jobs.test")
	run("go", "test", "-c", "-ldflags=-s -w", "-o", binary)
	size := must.Get(os.Stat(binary))(t).Size()

	t.Logf("go.mod requires %d modules, %d are linked, go.sum has %d lines, the test binary has %.1f MB",
		len(required), len(linked), strings.Count(string(must.Get(os.ReadFile(filepath.Join(dir, "go.sum")))(t)), "\n"), float64(size)/1e6)
	if n := len(required); n < 5 || n > mostModules {
		t.Errorf("go.mod requires %d modules, want at most %d: %q", n, mostModules, required)
	}
	if n := len(linked); n < 5 || n > mostModules {
		t.Errorf("%d modules are linked, want at most %d: %q", n, mostModules, linked)
	}
	if size > mostBytes {
		t.Errorf("the test binary has %d bytes, want at most %d", size, mostBytes)
	}
	if out := run(binary, "-test.v"); !strings.Contains(out, "--- PASS: TestWorker") || !strings.Contains(out, "--- PASS: TestJob") {
		t.Errorf("its tests: %s", out)
	}

	// The same tests with an ensemble of ZooKeeper, twice: the first run leaves nothing.
	var addrs []string
	for _, s := range oracle.Ensemble(t, 3, oracle.Options{}) {
		addrs = append(addrs, s.Addr())
	}
	env = append(env, "ZKTEST_ADDR="+strings.Join(addrs, ","))
	for range 2 {
		out := run(binary, "-test.v")
		if !strings.Contains(out, "--- SKIP: TestWorker") || !strings.Contains(out, "the test needs faults") || !strings.Contains(out, "--- PASS: TestJob") {
			t.Errorf("its tests with ZooKeeper: %s", out)
		}
	}
}
