package lockbench

import (
	"os"
	"syscall"
)

// sysProcAttr makes the kernel kill a server when the thread that started it ends, so
// that a killed run leaves no server behind.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

func freeze(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *os.Process) error   { return p.Signal(syscall.SIGCONT) }
