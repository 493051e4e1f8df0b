package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// tick is the unit of CPU time in /proc. On Linux it is the same for all programs, whatever
// tick the kernel uses, so we don't need to ask for it.
const tick = 10 * time.Millisecond

// usage is the CPU time and memory that processes have used.
type usage struct {
	cpu time.Duration
	rss int64 // bytes
}

// usageOf adds up the usage of some processes, from utime and stime in /proc/PID/stat
// and VmRSS in /proc/PID/status.
func usageOf(pids []int) (sum usage, err error) {
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return sum, err
		}
		// The second field is the name, in parentheses. It may contain anything, so we
		// search for the last parenthesis.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 13 {
			return sum, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
		}
		for _, f := range fields[11:13] {
			n, err := strconv.ParseInt(string(f), 10, 64)
			if err != nil {
				return sum, fmt.Errorf("/proc/%d/stat: %w", pid, err)
			}
			sum.cpu += time.Duration(n) * tick
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return sum, err
		}
		_, rest, _ := bytes.Cut(status, []byte("VmRSS:"))
		if fields := bytes.Fields(rest); len(fields) > 0 {
			kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
			if err != nil {
				return sum, fmt.Errorf("/proc/%d/status: %w", pid, err)
			}
			sum.rss += kib << 10
		}
	}
	return sum, nil
}
