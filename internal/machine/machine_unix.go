//go:build unix

package machine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// writable reports why this process can't write a file, or create files in a directory.
func writable(path string, directory bool) error {
	if directory {
		return unix.Access(path, unix.W_OK|unix.X_OK)
	}
	return unix.Access(path, unix.W_OK)
}

// maxFDs returns the process's limit of open files.
func maxFDs() int64 {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return -1
	}
	return int64(lim.Cur)
}
