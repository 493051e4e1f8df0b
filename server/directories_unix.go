//go:build unix

package server

import "golang.org/x/sys/unix"

// writable reports why this process can't write a file, or create files in a directory.
func writable(path string, directory bool) error {
	if directory {
		return unix.Access(path, unix.W_OK|unix.X_OK)
	}
	return unix.Access(path, unix.W_OK)
}
