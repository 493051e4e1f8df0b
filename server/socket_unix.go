//go:build unix && !(linux && (amd64 || arm64))

package server

import "syscall"

// recv reads up to len(b) bytes of input.
func recv(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

// send writes as much as the socket has room for.
func send(fd int, b []byte) (int, error) { return syscall.Write(fd, b) }
