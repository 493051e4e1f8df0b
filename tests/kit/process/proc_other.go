//go:build !linux

package process

import (
	"errors"
	"syscall"
)

var errOnlyLinux = errors.New("stopping a process works on Linux only")

func sysProcAttr(a *syscall.SysProcAttr) *syscall.SysProcAttr { return a }

func freeze(*Proc) error { return errOnlyLinux }
func thaw(*Proc) error   { return errOnlyLinux }

// Frozen reports whether the kernel has stopped the process.
func (*Proc) Frozen() bool { return false }
