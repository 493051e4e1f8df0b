//go:build unix

package vfs

import "syscall"

// nonBlock is a flag for OpenFile: opening a FIFO doesn't wait for a writer. It has no
// effect on a regular file.
const nonBlock = syscall.O_NONBLOCK
