//go:build linux

package deploy

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/process"
)

// prefix is an installation of Apache ZooKeeper 3.9.5, to record its scripts:
//
//	ZKGO_REQUIRE=1 JAVA_HOME=… go test ./tests/compat/operator/deploy -run Wrappers -args -prefix /opt/apache-zookeeper-3.9.5-bin
var prefix = flag.String("prefix", "", "record what the scripts of the ZooKeeper installed here do")

// transcript has the output and exit codes of ZooKeeper 3.9.5's scripts.
const transcript = "testdata/wrappers.txt"

// session lists the script invocations, in order.
var session = []string{
	"zkServer.sh",
	"zkServer.sh foo",
	"zkServer.sh status",
	"zkServer.sh stop",
	"zkServer.sh start",
	"zkServer.sh status",
	"zkServer.sh start",
	"zkServer.sh restart",
	"zkServer.sh status",
	"zkServer.sh status PREFIX/conf/zoo.cfg",
	"zkServer.sh --config PREFIX/conf status zoo.cfg",
	"zkServer.sh status bound.cfg",
	"zkServer.sh status member.cfg",
	"zkServer.sh status dynamic.cfg",
	"zkServer.sh status secure.cfg",
	"zkServer.sh stop",
	"zkServer.sh stop",
	"zkServer.sh --config /nonexistent status",
	"zkServer.sh status other.cfg",
	"zkCleanup.sh",
	"zkCleanup.sh -n 2",
	"zkCleanup.sh -n 3",
	"zkCleanup.sh -x",
	"zkCleanup.sh -n abc",
	"zkCleanup.sh 5",
}

// using is the first line that the scripts print.
const using = "err: Using config: PREFIX/bin/../conf/zoo.cfg\n"

// differences are the deliberate ones: step, ZooKeeper's line, our line.
var differences = [][3]string{
	{"zkServer.sh", "rc 0", "rc 2"},                       // an argument that isn't understood is a failure
	{"zkServer.sh foo", "rc 0", "rc 2"},                   // of the calling script
	{"zkServer.sh restart", using + using + using, using}, // ZooKeeper's script calls itself
	{"zkCleanup.sh -n 3", "", "err: zkgo removes old snapshots and logs by itself: nothing to do."},
}

// noise matches lines about a JVM, about missing files of ZooKeeper's scripts, and about TLS
// options that zkgo doesn't have.
var noise = regexp.MustCompile(`^(err: ZooKeeper JMX enabled|err: grep: |err: mkdir: |out: .*ERROR o\.a\.z\.u\.ServiceUtils|out: /.*java$|out: +$|out: Note: We used|out:   (command est|provided all|CLIENT_JVM|-Dzoo))`)

// TestWrappers runs the wrappers as the recording ran ZooKeeper's scripts.
func TestWrappers(t *testing.T) {
	process.Needed(t)
	if *prefix != "" {
		got := converse(t, *prefix)
		must.Do(t, os.WriteFile(transcript, []byte(got), 0o644))
		return
	}
	home := install(t)
	want := must.Get(os.ReadFile(transcript))(t)
	theirs, ours := steps(string(want)), steps(converse(t, home))
	if len(theirs) != len(session) || len(ours) != len(session) {
		t.Fatalf("%d steps recorded, %d done, %d wanted", len(theirs), len(ours), len(session))
	}
	for i, step := range session {
		expected := theirs[i]
		for _, d := range differences {
			if d[0] != step {
				continue
			}
			if d[1] == "" {
				expected += d[2] + "\n"
			} else {
				expected = strings.Replace(expected, strings.TrimSuffix(d[1], "\n")+"\n", strings.TrimSuffix(d[2], "\n")+"\n", 1)
			}
		}
		if ours[i] != expected {
			t.Errorf("step %d:\n%s\nwanted:\n%s", i, ours[i], expected)
		}
	}
}

// install lays the wrappers out as in ZooKeeper's binary release, in a directory with a space in
// its name.
func install(t *testing.T) string {
	t.Helper()
	home := filepath.Join(t.TempDir(), "a prefix")
	must.Do(t, os.CopyFS(filepath.Join(home, "bin"), os.DirFS(filepath.Join(root, "deploy/bin"))))
	must.Do(t, os.Symlink(program(t), filepath.Join(home, "bin", "zkgo")))
	return home
}

// converse runs the session and returns its output.
func converse(t *testing.T, home string) string {
	t.Helper()
	port := strconv.Itoa(freePort(t))
	dir := t.TempDir()
	common := []string{"dataDir=" + dir + "/data", "admin.enableServer=false", "initLimit=5", "syncLimit=5"}
	write(t, home+"/conf/zoo.cfg", append(common, " clientPort="+port)...)
	write(t, home+"/conf/bound.cfg", append(common, "clientPort="+port, "clientPortAddress=127.0.0.1")...)
	write(t, home+"/conf/member.cfg", append(common, "server.7=localhost:1:2;127.0.0.1:"+port)...)
	write(t, home+"/conf/dynamic.cfg", append(common, "dynamicConfigFile="+dir+"/dynamic")...)
	write(t, home+"/conf/secure.cfg", append(common, "secureClientPort=1")...)
	write(t, dir+"/dynamic", "server.7=localhost:1:2:participant;0.0.0.0:"+port)
	write(t, dir+"/data/myid", "7")
	pid := regexp.MustCompile(`process \d+`)
	t.Cleanup(func() { _ = exec.Command(home+"/bin/zkServer.sh", "stop").Run() }) // it may have stopped
	var b strings.Builder
	for _, step := range session {
		words := strings.Fields(strings.ReplaceAll(step, "PREFIX", "\x00"))
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "\x00", home)
		}
		cmd := command(t, filepath.Join(home, "bin", words[0]), words[1:]...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "JAVA_HOME=" + os.Getenv("JAVA_HOME")}
		// The background process of "start" keeps the test's pipes open: use files.
		var stdout, stderr = scratch(t), scratch(t)
		cmd.Stdout, cmd.Stderr = stdout, stderr
		code := 0
		if err := cmd.Run(); err != nil {
			var exit *exec.ExitError
			if !errors.As(err, &exit) {
				t.Fatal(err)
			}
			code = exit.ExitCode()
		}
		if strings.Contains(step, "start") && code == 0 {
			serves(t, "127.0.0.1:"+port) // "start" doesn't wait for it
		}
		fmt.Fprintf(&b, "$ %s\nrc %d\n", step, code)
		for i, f := range []*os.File{stdout, stderr} {
			text := string(content(t, f))
			text = strings.NewReplacer(home, "PREFIX", dir, "DIR", port, "PORT").Replace(text)
			text = pid.ReplaceAllString(text, "process PID")
			lines(&b, []string{"out", "err"}[i], text)
		}
	}
	return b.String()
}

// lines writes the lines that aren't noise, with the two streams always in the same order.
func lines(b *strings.Builder, name, text string) {
	for line := range strings.Lines(text) {
		if line = name + ": " + strings.TrimRight(line, "\n"); !noise.MatchString(line) {
			b.WriteString(line + "\n")
		}
	}
}

func scratch(t *testing.T) *os.File {
	t.Helper()
	f := must.Get(os.CreateTemp(t.TempDir(), ""))(t)
	t.Cleanup(func() { f.Close() })
	return f
}

func content(t *testing.T, f *os.File) []byte {
	t.Helper()
	b := must.Get(os.ReadFile(f.Name()))(t)
	return bytes.ReplaceAll(b, []byte("\r"), nil)
}

// steps splits a transcript into steps.
func steps(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "$ ") {
			all = append(all, "")
		}
		all[len(all)-1] += line
	}
	return all
}

// TestWrapperKeepsOffOthers: if a crash has left a stale pid file, its pid may belong to
// another program by now, which we should not touch.
func TestWrapperKeepsOffOthers(t *testing.T) {
	process.Needed(t)
	home := install(t)
	dir := t.TempDir()
	port := freePort(t)
	write(t, home+"/conf/zoo.cfg", "dataDir="+dir, fmt.Sprint("clientPort=", port), "admin.enableServer=false")
	other := run(t, exec.Command("tail", "-f", "/dev/null"))
	pidfile := filepath.Join(dir, "zookeeper_server.pid")
	write(t, pidfile, strconv.Itoa(other.PID()))
	t.Cleanup(func() { _ = exec.Command(home+"/bin/zkServer.sh", "stop").Run() }) // it may have stopped
	if out := script(t, home, "stop"); !strings.Contains(out, "STOPPED") {
		t.Error(out)
	}
	write(t, pidfile, strconv.Itoa(other.PID()))
	if out := script(t, home, "start"); !strings.Contains(out, "STARTED") {
		t.Error(out)
	}
	serves(t, local(port))
	script(t, home, "stop")
	if !other.Running() {
		t.Error("the wrapper has ended a program that is not zkgo")
	}
}

// script runs zkServer.sh and returns its standard output.
func script(t *testing.T, home string, args ...string) string {
	t.Helper()
	out := scratch(t)
	cmd := command(t, home+"/bin/zkServer.sh", args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, content(t, out))
	}
	return string(content(t, out))
}
