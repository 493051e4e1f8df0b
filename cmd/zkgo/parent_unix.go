//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// goneFunc returns a function that reports whether a process has ended; 0 means the parent. When a
// parent ends, the system gives its child a new parent.
func goneFunc(pid int) (func() bool, error) {
	if pid == 0 {
		parent := os.Getppid()
		return func() bool { return os.Getppid() != parent }, nil
	}
	gone := func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
	if pid < 0 || gone() {
		return nil, os.ErrProcessDone
	}
	return gone, nil
}
