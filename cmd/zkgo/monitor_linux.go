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

// The two calls of prctl(2) for the time by which the kernel may wake the calling
// thread late, in nanoseconds.
const (
	setTimerSlack = 29 // PR_SET_TIMERSLACK
	getTimerSlack = 30 // PR_GET_TIMERSLACK
)

// monitorSlack is how late the runtime's monitor may wake, in nanoseconds.
const monitorSlack = 500_000

// spareThreads are made beyond those there are: the monitor's children would have
// its slack, and makes one when all others wait for the kernel.
const spareThreads = 6

// slowMonitor lets the thread with which the Go runtime watches over its goroutines
// (sysmon) sleep longer. It wants to look every 20 µs for as long as anything runs,
// and a server that waits for its disk or a client every few hundred never gets out
// of that: a fifth of the processor time of a lone write was the monitor's. What it
// watches for, system calls that block and goroutines that never pause, is in no
// such hurry.
//
// No call reaches that thread alone, which never runs a goroutine: all get the
// slack, and those that do run goroutines give it back. So it is called first,
// while there are few. A binary with cgo needs CAP_SYS_NICE to change its other
// threads. After an error the program is as good, and busier.
func slowMonitor() error {
	usual, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	if errno != 0 {
		return fmt.Errorf("timer slack of a thread: %w", errno)
	}
	if usual >= monitorSlack { // somebody wants it so
		return nil
	}
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	_, _, errno = syscall.AllThreadsSyscall(syscall.SYS_PRCTL, setTimerSlack, monitorSlack, 0)
	switch errno {
	case 0:
	case syscall.ENOTSUP: // as it is with cgo
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

// slackByFile gives threads of this process the monitor's slack.
func slackByFile(threads []os.DirEntry) error {
	for _, t := range threads {
		err := os.WriteFile("/proc/"+t.Name()+"/timerslack_ns", strconv.AppendInt(nil, monitorSlack, 10), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // it may have ended
			return err
		}
	}
	return nil
}

// restoreSlack gives n threads that run goroutines their usual slack back, which
// are all if there are fewer; those that they make later inherit it. n goroutines
// that none of the runtime's processors may leave before all of them run are on n
// threads.
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
