//go:build !linux

package failover

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// The scenarios need features that only Linux has: signals that freeze a process, file
// systems in user space, and children that die with their parent.
var errOnlyLinux = errors.New("this works on Linux only")

func sysProcAttr() *syscall.SysProcAttr { return nil }

func terminate(p *os.Process) error { return p.Signal(os.Interrupt) }
func freeze(*os.Process) error      { return errOnlyLinux }
func thaw(*os.Process) error        { return errOnlyLinux }

func hog() (*exec.Cmd, error) { return nil, errOnlyLinux }

type disk struct{}

func mountDisk(string) (*disk, error) { return nil, errOnlyLinux }

// HoldFsyncs is never called: there is no disk.
func (*disk) HoldFsyncs() (release func()) { return func() {} }

// Unmount is never called: there is no disk.
func (*disk) Unmount() error { return nil }

func machine() string { return runtime.GOOS + "/" + runtime.GOARCH }
func load() string    { return "unknown" }
