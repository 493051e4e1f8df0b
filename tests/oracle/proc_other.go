//go:build !linux

package oracle

import "syscall"

// sysProcAttr asks for nothing: only Linux can tie a child's life to ours.
func sysProcAttr() *syscall.SysProcAttr { return nil }
