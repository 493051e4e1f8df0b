package main

import "os"

// goneFunc returns a function that reports whether a process has ended; 0 means the
// parent. It keeps a handle of the parent, because another process may reuse the
// parent's id.
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
		_, _ = p.Wait() // ends with this process at the latest
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
