//go:build !linux

package main

// slowMonitor does nothing, because only Linux supports timer slack.
func slowMonitor() error { return nil }
