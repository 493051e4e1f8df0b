//go:build !linux

package lockbench

import (
	"errors"
	"os"
	"syscall"
)

var errOnlyLinux = errors.New("stopping a process works on Linux only")

func sysProcAttr() *syscall.SysProcAttr { return nil }
func freeze(*os.Process) error          { return errOnlyLinux }
func thaw(*os.Process) error            { return errOnlyLinux }
