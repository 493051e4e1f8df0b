package main

import "os"

// goneFunc returns what tells whether a process has ended, the parent for 0. A
// process keeps its parent's number, which may be another's by then, so the
// parent itself is held.
func goneFunc(pid int) (func() bool, error) {
	if pid == 0 {
		pid = os.Getppid()
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		_, _ = p.Wait() // it ends with this process, if not before
		close(ended)
	}()
	return func() bool {
		select {
		case <-ended:
			return true
		default:
			return false
		}
	}, nil
}
