package poller

import (
	"syscall"
	"unsafe"
)

// Queued returns how many bytes the peer of a socket has yet to acknowledge, and how many
// bytes it has sent that have not been read; 0 without a socket.
func Queued(raw syscall.RawConn) (unsent, unread int) {
	if raw == nil {
		return 0, 0
	}
	_ = raw.Control(func(fd uintptr) {
		unsent, unread = queue(fd, syscall.TIOCOUTQ), queue(fd, syscall.TIOCINQ)
	})
	return unsent, unread
}

// queue returns the length of a queue of a socket, 0 on error.
func queue(fd uintptr, which uintptr) int {
	var n int32
	if _, _, e := syscall.Syscall(syscall.SYS_IOCTL, fd, which, uintptr(unsafe.Pointer(&n))); e != 0 {
		return 0
	}
	return int(n)
}
