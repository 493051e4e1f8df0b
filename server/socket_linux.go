//go:build linux && (amd64 || arm64)

package server

import (
	"syscall"
	"unsafe"
)

// recv and send are read(2) and write(2) for sockets that never wait. Go's own
// tell its scheduler of each call, lest a call that takes long keeps a processor, and
// the kernel locks the file's position in read and write; neither has a point for
// what ends after some microseconds, which is why more than quick goes the usual way.

// quick is how many bytes are copied in few microseconds.
const quick = 16 << 10

// recv reads what has arrived, up to len(b) bytes.
func recv(fd int, b []byte) (int, error) {
	if len(b) == 0 || len(b) > quick {
		return syscall.Read(fd, b)
	}
	n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}

// send writes what the socket has room for.
func send(fd int, b []byte) (int, error) {
	if len(b) == 0 || len(b) > quick {
		return syscall.Write(fd, b)
	}
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	n, _, e := syscall.RawSyscall6(syscall.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), flags, 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}
