package oracle

import "syscall"

// sysProcAttr makes the kernel kill the server when the thread that started it
// dies, and so when the test binary dies: a killed test leaves no server running.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
