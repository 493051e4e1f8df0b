package oracle

import "syscall"

// sysProcAttr makes the kernel kill the server when the thread that started it
// dies, and with it the test binary: a killed test leaves no server behind.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
