package testserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// user is a third-party module. Its own tests need a ZooKeeper.
type user struct {
	module, version string
	pkg             string
	flags           []string
	// setup tells the tests where the server is: it returns their environment. dir has the
	// copy of the module.
	setup func(t *testing.T, dir string) []string
	// passes is the number of tests and subtests that pass; skips are the ones that the suite
	// itself skips.
	passes int
	skips  []string
}

// users returns the suites to run, with the changes to each.
func users() []user {
	return []user{
		{ // unchanged
			module: "github.com/go-kit/kit", version: "v0.13.0", pkg: "./sd/zk", flags: []string{"-tags=integration"},
			setup:  func(t *testing.T, _ string) []string { return []string{"ZK_ADDR=" + start(t).connect} },
			passes: 13, skips: []string{"TestGetEntriesPayloadOnServer"}, // t.Skip("FLAKY")
		},
		{ // one line: the suite has a fixed port
			module: "github.com/abronan/valkeyrie", version: "v0.2.0", pkg: "./store/zookeeper",
			setup: func(t *testing.T, dir string) []string {
				replace(t, filepath.Join(dir, "store/zookeeper/zookeeper_test.go"), `"localhost:2181"`, `"`+start(t).connect+`"`)
				return nil
			},
			passes: 2,
		},
		{ // one line of the client's harness, which can't parse srvr's output since it has an ISO date
			module: "github.com/dubbogo/gost", version: "v1.11.16", pkg: "./database/kv/zk", flags: []string{"-mod=mod"},
			setup: func(t *testing.T, dir string) []string {
				client := download(t, "github.com/dubbogo/go-zookeeper", "v1.0.3")
				replace(t, filepath.Join(client, "zk/server_help.go"), "_, ok := FLWSrvr(serverAddrs, time.Second)", "ok := FLWRuok(serverAddrs, time.Second)[0]")
				if out, err := command(t, dir, nil, "go", "mod", "edit", "-replace", "github.com/dubbogo/go-zookeeper="+client); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				return []string{"PATH=" + javaShim(t) + string(os.PathListSeparator) + os.Getenv("PATH")}
			},
			passes: 8,
		},
	}
}

// TestUsers runs the tests of modules that don't know zkgo.
func TestUsers(t *testing.T) {
	t.Parallel()
	process.Needed(t)
	if runtime.GOOS == "windows" {
		t.Skip("one of the harnesses starts its server by a shell script")
	}
	for _, u := range users() {
		t.Run(filepath.Base(u.module), func(t *testing.T) {
			t.Parallel()
			dir := download(t, u.module, u.version)
			env := u.setup(t, dir)
			args := slices.Concat([]string{"test", "-json", "-count=1", "-timeout=5m"}, u.flags, []string{u.pkg})
			out, err := command(t, dir, append(env, "GOFLAGS=-buildvcs=false", "GOWORK=off"), "go", args...)
			passed, skipped := outcomes(out)
			t.Logf("%s %s %s: %d passed, %d skipped", u.module, u.version, u.pkg, passed, len(skipped))
			if err != nil || passed != u.passes || !slices.Equal(skipped, u.skips) {
				t.Errorf("%v; %d passed, want %d; skipped %q, want %q:\n%s", err, passed, u.passes, skipped, u.skips, spoken(out))
			}
		})
	}
}

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

func events(out string) (list []event) {
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			list = append(list, e)
		}
	}
	return list
}

func outcomes(out string) (passed int, skipped []string) {
	for _, e := range events(out) {
		switch {
		case e.Test != "" && e.Action == "pass":
			passed++
		case e.Test != "" && e.Action == "skip":
			skipped = append(skipped, e.Test)
		}
	}
	return passed, skipped
}

// spoken returns the end of the tests' output.
func spoken(out string) string {
	var b strings.Builder
	for _, e := range events(out) {
		b.WriteString(e.Output)
	}
	if b.Len() == 0 {
		return out
	}
	return b.String()[max(0, b.Len()-10_000):]
}

// download copies a module to a directory in which we may change it.
func download(t *testing.T, module, version string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", module+"@"+version)
	cmd.Dir = t.TempDir() // outside of this module
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	if decode := json.Unmarshal(out, &found); err != nil || decode != nil || found.Dir == "" {
		t.Fatalf("download of %s@%s: %v %s", module, version, err, found.Error)
	}
	dir := t.TempDir()
	must.Do(t, os.CopyFS(dir, os.DirFS(found.Dir)))
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(0o600)
		if d.IsDir() {
			mode = 0o700
		}
		return os.Chmod(path, mode)
	}))
	return dir
}

// replace replaces one occurrence in a file.
func replace(t *testing.T, file, before, after string) {
	t.Helper()
	b := must.Get(os.ReadFile(file))(t)
	if n := bytes.Count(b, []byte(before)); n != 1 {
		t.Fatalf("%s: %q is there %d times", file, before, n)
	}
	must.Do(t, os.WriteFile(file, bytes.Replace(b, []byte(before), []byte(after), 1), 0o600))
}

// javaShim returns a directory with a program named java, for harnesses that start their
// servers with "java -jar … server zoo.cfg".
func javaShim(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' testserver --quiet --set '4lw.commands.whitelist=*' \"$4\"\n", process.Binary(t))
	if err := os.WriteFile(filepath.Join(dir, "java"), []byte(script), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	return dir
}
