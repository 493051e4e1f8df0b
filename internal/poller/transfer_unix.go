//go:build unix

package poller

import "syscall"

// Supported reports whether Recv and Writer work on this system.
const Supported = true

// transient reports whether a call should be repeated.
func transient(err error) bool { return err == syscall.EINTR }

// blocks reports whether a call would have had to wait.
func blocks(err error) bool { return err == syscall.EAGAIN }
