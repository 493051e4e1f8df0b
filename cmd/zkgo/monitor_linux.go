package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// The prctl(2) operations for the timer slack of the calling thread, i.e. how late
// the kernel may wake it, in nanoseconds.
const (
	setTimerSlack = 29 // PR_SET_TIMERSLACK
	getTimerSlack = 30 // PR_GET_TIMERSLACK
)

// monitorSlack is the timer slack of the runtime's monitor thread in nanoseconds.
const monitorSlack = 500_000

// spareThreads is the number of additional threads to create. Threads that the
// monitor creates inherit its slack, and it creates one when all other threads block
// in the kernel.
const spareThreads = 6

// slowMonitor makes the Go runtime's monitor thread (sysmon) sleep longer. While any
// goroutine runs, sysmon wakes every 20 µs. In a server that waits for its disk or a
// client every few hundred microseconds this never stops: sysmon used a fifth of the
// processor time of a lone write. The events it watches for, blocking system calls
// and goroutines that never yield, aren't that urgent.
//
// No call can address sysmon alone, because it never runs a goroutine. So slowMonitor
// gives the slack to all threads, and those that run goroutines reset it. Call it
// first, while there are few threads. A binary with cgo needs CAP_SYS_NICE to change
// its other threads. An error is harmless: the program only uses more processor time.
func slowMonitor() error {
	usual, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	if errno != 0 {
		return fmt.Errorf("timer slack of a thread: %w", errno)
	}
	if usual >= monitorSlack { // set deliberately
		return nil
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	_, _, errno = syscall.AllThreadsSyscall(syscall.SYS_PRCTL, setTimerSlack, monitorSlack, 0)
	switch errno {
	case 0:
	case syscall.ENOTSUP: // the result with cgo
		err = slackByFile(threads)
	default: // nothing was changed
		return fmt.Errorf("timer slack of all threads: %w", errno)
	}
	restoreSlack(len(threads)+spareThreads, usual)
	if err != nil {
		return fmt.Errorf("timer slack of all threads: %w", err)
	}
	return nil
}

// slackByFile sets the monitor's slack on threads of this process.
func slackByFile(threads []os.DirEntry) error {
	for _, t := range threads {
		err := os.WriteFile("/proc/"+t.Name()+"/timerslack_ns", strconv.AppendInt(nil, monitorSlack, 10), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // the thread may have ended
			return err
		}
	}
	return nil
}

// restoreSlack resets the slack of n threads that run goroutines, or of all of them
// if there are fewer; threads that they create later inherit it. To run on n threads,
// it starts n goroutines that hold their processor until all of them run.
func restoreSlack(n int, usual uintptr) {
	defer restoreProcs(runtime.GOMAXPROCS(n))
	var running atomic.Int64
	var done sync.WaitGroup
	for range n {
		done.Go(func() {
			_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, usual, 0) // cannot fail
			running.Add(1)
			for running.Load() < int64(n) {
				_, _, _ = syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0)
			}
		})
	}
	done.Wait()
}
