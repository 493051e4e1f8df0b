package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// clockTick is the unit of /proc/stat: USER_HZ is 100 everywhere Go runs on Linux.
const clockTick = 10 * time.Millisecond

// processorTimes returns the processor time of this process, and how long all
// processors of the machine were idle, together. ok is false where that is not known.
func processorTimes() (used, idle time.Duration, ok bool) {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0, 0, false
	}
	f, err := os.Open("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	defer f.Close()
	var b [256]byte // all lines are made whatever is read, but only the first is copied
	n, _ := f.Read(b[:])
	idle, ok = idleTime(b[:n])
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), idle, ok
}

// idleTime reads the first line of /proc/stat: "cpu", then the time in user mode, nice,
// in the kernel, idle and idle with something to wait for (proc_stat(5)).
func idleTime(stat []byte) (time.Duration, bool) {
	fields := bytes.Fields(stat)
	if len(fields) < 6 || string(fields[0]) != "cpu" {
		return 0, false
	}
	idle, err := strconv.ParseInt(string(fields[4]), 10, 64)
	if err != nil {
		return 0, false
	}
	wait, err := strconv.ParseInt(string(fields[5]), 10, 64)
	return time.Duration(idle+wait) * clockTick, err == nil
}
