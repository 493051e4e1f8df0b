package vfs

import (
	"os"
	"syscall"
)

// datasync makes a file's content durable, and as much of its metadata as a reader
// needs. It avoids the journal write that fsync does for mtime.
func datasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
