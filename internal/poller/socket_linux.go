//go:build linux && (amd64 || arm64)

package poller

import (
	"syscall"
	"unsafe"
)

// recv and send are read(2) and write(2) for nonblocking sockets. Go's own calls inform the
// scheduler, because a long call would occupy a processor, and in read and write the kernel
// locks the file position. We avoid both for a call of a few microseconds. For transfers
// longer than quick, we use Go's calls.

// quick is how many bytes are copied in a few microseconds.
const quick = 16 << 10

// recv reads up to len(b) bytes of input.
func recv(fd uintptr, b []byte) (int, error) {
	if len(b) == 0 || len(b) > quick {
		return syscall.Read(int(fd), b)
	}
	n, _, e := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), syscall.MSG_DONTWAIT, 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}

// send writes as much as fits into the socket's buffer.
func send(fd uintptr, b []byte) (int, error) {
	if len(b) == 0 || len(b) > quick {
		return syscall.Write(int(fd), b)
	}
	const flags = syscall.MSG_DONTWAIT | syscall.MSG_NOSIGNAL
	n, _, e := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), flags, 0, 0)
	if e != 0 {
		return -1, e
	}
	return int(n), nil
}
