//go:build !unix

package poller

import "errors"

// Supported reports whether Recv and Writer work on this system.
const Supported = false

func recv(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func send(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

// transient reports whether a call should be repeated.
func transient(error) bool { return false }

// blocks reports whether a call would have had to wait.
func blocks(error) bool { return false }
