//go:build !linux

package main

import "time"

// processorTimes isn't supported on this platform.
func processorTimes() (used, idle time.Duration, ok bool) { return 0, 0, false }
