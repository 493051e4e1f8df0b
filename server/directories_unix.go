//go:build unix

package server

import "golang.org/x/sys/unix"

// writable reports why this process cannot make files in a directory.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
