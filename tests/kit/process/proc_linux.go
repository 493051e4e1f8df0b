package process

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// sysProcAttr adds that the kernel kills the process when the thread that started it dies.
func sysProcAttr(a *syscall.SysProcAttr) *syscall.SysProcAttr {
	if a == nil {
		a = new(syscall.SysProcAttr)
	}
	a.Pdeathsig = syscall.SIGKILL
	return a
}

func freeze(p *Proc) error { return p.Signal(syscall.SIGSTOP) }
func thaw(p *Proc) error   { return p.Signal(syscall.SIGCONT) }

// Frozen reports whether the kernel has stopped the process.
func (p *Proc) Frozen() bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		return false
	}
	_, rest, ok := strings.Cut(string(b), ") ")
	return ok && strings.HasPrefix(rest, "T")
}
