//go:build !linux

package main

import "time"

// processorTimes is not known here.
func processorTimes() (used, idle time.Duration, ok bool) { return 0, 0, false }
