package process

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

// launcherVariable turns this test binary into a process that launches two others
// and waits to be killed. Its value is the path of a log.
const launcherVariable = "ZKGO_PROCESS_LAUNCHER"

// TestServersDieWithTheTest checks that launched processes do not outlive a test
// binary that is killed, even if they were stopped.
func TestServersDieWithTheTest(t *testing.T) {
	t.Parallel()
	if log := os.Getenv(launcherVariable); log != "" {
		launchAndWait(t, log)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServersDieWithTheTest$")
	cmd.Env = append(os.Environ(), launcherVariable+"="+filepath.Join(t.TempDir(), "log"))
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	var pids [2]int
	must.Get(fmt.Fscan(bufio.NewReader(out), &pids[0], &pids[1]))(t)
	must.Do(t, syscall.Kill(pids[1], syscall.SIGSTOP))
	for _, pid := range pids {
		if gone(pid) {
			t.Fatalf("process %d was never there", pid)
		}
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	for _, pid := range pids {
		defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }() // if it has outlived the one that launched it
		wait.Eventually(t, fmt.Sprintf("process %d is gone", pid), func() bool { return gone(pid) })
	}
}

// launchAndWait is the process that is killed.
func launchAndWait(t *testing.T, log string) {
	t.Helper()
	var pids []string
	for range 2 {
		p := must.Get(Launch(exec.Command("sleep", "600"), log))(t)
		pids = append(pids, fmt.Sprint(p.PID()))
	}
	fmt.Println(strings.Join(pids, " "))
	select {}
}

// gone reports whether the process does not exist any more, or is a zombie.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return strings.HasPrefix(rest, "Z")
}

// TestAProcessIsFrozenStoppedAndKilled: Proc should report what happens to the process.
func TestAProcessIsFrozenStoppedAndKilled(t *testing.T) {
	t.Parallel()
	p := must.Get(Launch(exec.Command("sh", "-c", "echo here; exec sleep 600"), ""))(t)
	t.Cleanup(p.Kill)
	wait.Eventually(t, "its output", func() bool { return p.Output() == "here\n" })
	must.Do(t, p.Freeze())
	if !p.Running() || !p.Frozen() {
		t.Errorf("frozen: running %v, frozen %v", p.Running(), p.Frozen())
	}
	must.Do(t, p.Thaw())
	if err := p.Stop(syscall.SIGTERM); err == nil || p.Running() {
		t.Errorf("ended by SIGTERM: %v, running %v", err, p.Running())
	}
	if err := p.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a signal to a process that has ended: %v", err)
	}
	if err := p.Freeze(); err == nil {
		t.Error("a process that has ended stands still")
	}
	if err := p.Await(Patience, "a miracle", func() error { return errSilent }); err == nil || !strings.Contains(err.Error(), "here\n") {
		t.Errorf("waiting for a process that has ended: %v", err)
	}
	if _, err := Launch(exec.Command("/nonexistent"), ""); err == nil {
		t.Error("a program that doesn't exist was started")
	}
}

// TestParseStatus reads replies to srvr.
func TestParseStatus(t *testing.T) {
	t.Parallel()
	got, err := ParseStatus("Zookeeper version: 3.9.5\nLatency min/avg/max: 0/0.0/0\nZxid: 0x300000007\nMode: follower\nNode count: 5\n")
	if err != nil || got.Mode != "follower" || got.Epoch() != 3 || got.Zxid&0xffffffff != 7 || !got.Serves() {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "This ZooKeeper instance is not currently serving requests\n", "Zxid: 0xyz\nMode: leader\n"} {
		if got, err := ParseStatus(bad); err == nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
}
