package vfs

import (
	"io"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// writeDurably implements durableWriter.
func (f osFile) writeDurably(b []byte, off int64) error {
	if !givesUp(len(b)) {
		if _, err := f.File.WriteAt(b, off); err != nil {
			return err
		}
		return datasync(f.File)
	}
	fd := int(f.Fd())
	for {
		n, call, errno := pwriteSync(fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), off)
		runtime.KeepAlive(b)
		runtime.KeepAlive(f.File)
		switch {
		case errno == syscall.EINTR: // retry all of it
		case errno != 0:
			return &os.PathError{Op: call, Path: f.Name(), Err: errno}
		case n == len(b):
			return nil
		case n == 0:
			return &os.PathError{Op: call, Path: f.Name(), Err: io.ErrShortWrite}
		default:
			b, off = b[n:], off+int64(n)
		}
	}
}

// pwriteSync is pwrite(2), followed by fdatasync(2) if that wrote everything. For the
// Go runtime both are one system call, which gives up the processor immediately. n is
// the number of bytes written, and call names the system call that returned errno.
//
//go:norace
//go:nosplit
func pwriteSync(fd int, p unsafe.Pointer, length int, off int64) (n int, call string, errno syscall.Errno) {
	call = "write"
	entersyscallblock()
	r, _, errno := syscall.RawSyscall6(syscall.SYS_PWRITE64, uintptr(fd), uintptr(p), uintptr(length), uintptr(off), 0, 0)
	if errno == 0 {
		n = int(r)
	}
	if n == length {
		call = "fdatasync"
		_, _, errno = syscall.RawSyscall(syscall.SYS_FDATASYNC, uintptr(fd), 0, 0)
	}
	exitsyscall()
	return n, call, errno
}

// The start and the end of a system call that the Go runtime knows will block. The
// syscall package has no such call, but the runtime keeps these functions for
// packages that make their own (go.dev/issue/67401). Code between the two must not
// grow the stack or need the runtime.

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
