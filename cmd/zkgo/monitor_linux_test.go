package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// timerSlacks returns the timer slack of each thread of a process, by thread id.
func timerSlacks(t *testing.T, pid int) map[int]int {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		t.Fatal(err)
	}
	slacks := make(map[int]int)
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join("/proc", task.Name(), "timerslack_ns"))
		if os.IsPermission(err) {
			t.Skip("to see how late another thread may wake takes CAP_SYS_NICE:", err)
		}
		if os.IsNotExist(err) {
			continue // the thread has ended
		}
		id, _ := strconv.Atoi(task.Name())
		if slacks[id], err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
			t.Fatal(err)
		}
	}
	return slacks
}

// TestSlowMonitor checks that the runtime's monitor has the slack and that the main
// thread doesn't.
func TestSlowMonitor(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	usual := timerSlacks(t, os.Getpid())[os.Getpid()]
	if usual >= monitorSlack {
		t.Skipf("whoever started this lets all threads wake %d ns late", usual)
	}
	cmd := exec.CommandContext(t.Context(), self, "testserver")
	cmd.Env = append(os.Environ(), roleVar+"=zkgo")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	readiness(t, bufio.NewReader(out))
	slacks := timerSlacks(t, cmd.Process.Pid)
	slow := 0
	for _, slack := range slacks {
		if slack == monitorSlack {
			slow++
		}
	}
	if slow == 0 || slow > len(slacks)/2 || slacks[cmd.Process.Pid] != usual {
		t.Errorf("the threads of the server may wake so late: %v", slacks)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // the error is that it was killed
}
