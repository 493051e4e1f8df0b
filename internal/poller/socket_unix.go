//go:build unix && !(linux && (amd64 || arm64))

package poller

import "syscall"

// recv reads up to len(b) bytes of input.
func recv(fd uintptr, b []byte) (int, error) { return syscall.Read(int(fd), b) }

// send writes as much as fits into the socket's buffer.
func send(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) }
