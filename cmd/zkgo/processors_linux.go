package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// clockTick is the unit of /proc/stat: USER_HZ is 100 on all Linux platforms of Go.
const clockTick = 10 * time.Millisecond

// processorTimes returns the processor time of this process and the total idle time
// of all processors of the machine. ok is false if they aren't known.
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
	var b [256]byte // the kernel generates all lines anyway, but copies only the first
	n, _ := f.Read(b[:])
	idle, ok = idleTime(b[:n])
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), idle, ok
}

// idleTime parses the first line of /proc/stat: "cpu", then the times in user mode,
// nice, kernel mode, idle, and idle while waiting for I/O (proc_stat(5)).
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
