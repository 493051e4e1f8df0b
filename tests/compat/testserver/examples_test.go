package testserver

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
	"github.com/zkgo/zkgo/tests/kit/tools"
)

func TestMain(m *testing.M) {
	code := m.Run()
	process.Cleanup()
	os.Exit(code)
}

// patience bounds one suite, which downloads missing packages.
const patience = 10 * time.Minute

// command runs a test program and returns its output.
func command(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestThePageShowsTestedCommands: the page should contain the example files verbatim, and link
// to the test with Curator.
func TestThePageShowsTestedCommands(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../../docs/guide/testserver.md"))(t)
	shown := regexp.MustCompile("(?s)<!-- tests/compat/testserver/(\\S+) -->\n```\\w+\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	if len(shown) != 1 {
		t.Errorf("the page shows %d files, want 1", len(shown))
	}
	for _, m := range shown {
		file, err := os.ReadFile(filepath.FromSlash(m[1]))
		if err != nil {
			t.Error(err)
		} else if strings.ReplaceAll(string(file), "\r\n", "\n") != m[2] {
			t.Errorf("%s is not what the page shows", m[1])
		}
	}
}

// TestTheReadmeShowsTestedCommands: the examples in the README should be parts of these files.
func TestTheReadmeShowsTestedCommands(t *testing.T) {
	t.Parallel()
	page := must.Get(os.ReadFile("../../../README.md"))(t)
	shown := regexp.MustCompile("(?s)<!-- of tests/compat/testserver/(\\S+) -->\n```\\w+\n(.*?)```\n").FindAllStringSubmatch(string(page), -1)
	if len(shown) != 2 {
		t.Errorf("the page shows parts of %d files, want 2", len(shown))
	}
	for _, m := range shown {
		if file, err := os.ReadFile(filepath.FromSlash(m[1])); err != nil || !strings.Contains(string(file), m[2]) {
			t.Errorf("%s does not have what the page shows: %v", m[1], err)
		}
	}
}

// TestPytest runs the example with Kazoo.
func TestPytest(t *testing.T) {
	t.Parallel()
	python := tools.Find(t).Python
	out, err := command(t, "pytest", []string{"ZKGO=" + process.Binary(t)},
		python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--timeout", "120", ".")
	if want := "7 passed"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, want %s:\n%s", err, want, out)
	}
}

// TestJUnit runs the example with Curator.
func TestJUnit(t *testing.T) {
	t.Parallel()
	tools.Find(t)
	dir := t.TempDir() // Maven writes its output beside the sources
	must.Do(t, os.CopyFS(dir, os.DirFS("junit")))
	out, err := command(t, dir, []string{"ZKGO=" + process.Binary(t), "MAVEN_OPTS=-XX:TieredStopAtLevel=1"}, "mvn", "-B", "-ntp", "test")
	if want := "Tests run: 4, Failures: 0, Errors: 0, Skipped: 0"; err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, want %s:\n%s", err, want, out)
	}
}

// binary is a running zkgo testserver.
type binary struct{ connect, control string }

// start starts zkgo testserver, which ends with the test.
func start(t *testing.T, args ...string) binary {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), process.Binary(t), append([]string{"testserver", "--quiet"}, args...)...)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait() // the end of the test may have killed it
	})
	var line string
	must.Get(fmt.Fscanln(out, &line))(t)
	var b binary
	for field, to := range map[string]*string{"connectString": &b.connect, "control": &b.control} {
		m := regexp.MustCompile(`"` + field + `":"([^"]*)"`).FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%q has no %s", line, field)
		}
		*to = m[1]
	}
	return b
}
