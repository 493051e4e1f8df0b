package chaos

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// launcherVariable turns this test binary into a process that launches two others
// and waits to be killed. Its value is the path of a log.
const launcherVariable = "ZKGO_CHAOS_LAUNCHER"

// TestServersDieWithTheTest checks that launched processes do not outlive a test
// binary that is killed, even if they were stopped.
func TestServersDieWithTheTest(t *testing.T) {
	t.Parallel()
	if log := os.Getenv(launcherVariable); log != "" {
		launchAndWait(t, log)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServersDieWithTheTest$")
	cmd.Env = append(os.Environ(), launcherVariable+"="+filepath.Join(t.TempDir(), "log"))
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	var pids [2]int
	_, err = fmt.Fscan(bufio.NewReader(out), &pids[0], &pids[1])
	check(t, err)
	check(t, syscall.Kill(pids[1], syscall.SIGSTOP))
	for _, pid := range pids {
		if gone(pid) {
			t.Fatalf("process %d was never there", pid)
		}
	}
	check(t, cmd.Process.Kill())
	_ = cmd.Wait() // it was killed
	for _, pid := range pids {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(patience); !gone(pid); <-tick.C {
			if time.Now().After(deadline) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
				t.Fatalf("process %d has outlived the one that launched it", pid)
			}
		}
	}
}

// launchAndWait is the process that is killed.
func launchAndWait(t *testing.T, log string) {
	t.Helper()
	var pids []string
	for range 2 {
		p, err := launch(log, stayHere, "sleep", "600")
		check(t, err)
		pids = append(pids, fmt.Sprint(p.cmd.Process.Pid))
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
