//go:build linux

package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/ops/health"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/oracle"
	"github.com/zkgo/zkgo/tests/kit/process"
)

func TestMain(m *testing.M) {
	code := m.Run()
	for _, dir := range []string{built.dir, released.dir} {
		if dir != "" {
			_ = os.RemoveAll(filepath.Dir(dir)) // in the temp dir
		}
	}
	os.Exit(code)
}

// built is the program that the tests run.
var built struct {
	once sync.Once
	dir  string // that contains the program
	err  error
}

// program builds the program, once, with the flags of the Dockerfile and of a release, so
// that all our builds share the compiled packages.
func program(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		dir, err := os.MkdirTemp("", "zkgo-deploy-test-")
		if err != nil {
			built.err = err
			return
		}
		built.dir = filepath.Join(dir, "bin")
		cmd := command(t, "make", "-C", root, "binary", "OUT="+filepath.Join(built.dir, "zkgo"), "VERSION="+version)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("%s: %w\n%s", cmd, err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "zkgo")
}

// root is the path of the repository.
const root = "../../../.."

// serves waits until the server at a client port serves, and returns its mode.
func serves(t testing.TB, addr string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*process.Patience)
	defer cancel()
	mode, err := health.Await(ctx, health.Target{Addr: addr}, process.Patience, 20*time.Millisecond)
	if err != nil {
		t.Fatalf("%s does not serve: %v", addr, err)
	}
	return mode
}

// freePort returns a free port.
func freePort(t testing.TB) int {
	t.Helper()
	ports := must.Get(oracle.FreePorts(1))(t)
	return ports[0]
}

// run starts a process in the background and kills it when the test ends.
func run(t testing.TB, cmd *exec.Cmd) *process.Proc {
	t.Helper()
	p := must.Get(process.Launch(cmd, ""))(t)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s:\n%s", cmd, p.Output())
		}
	})
	return p
}

// output runs a program until it ends and returns its output.
func output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

// command is exec.Command with a timeout.
func command(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, name, args...)
}

// write writes a file and creates its parent directories.
func write(t testing.TB, path string, lines ...string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
}

// local returns a loopback address with a port.
func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// rooted fails the test unless it runs as root. We don't skip, because these tests run only
// on request.
func rooted(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this has to run as root")
	}
}
