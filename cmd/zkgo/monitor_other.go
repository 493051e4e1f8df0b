//go:build !linux

package main

// slowMonitor does nothing: only Linux lets a thread say how late it may wake.
func slowMonitor() error { return nil }
