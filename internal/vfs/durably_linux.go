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
		case errno == syscall.EINTR: // all of it once more
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

// pwriteSync is pwrite(2), and fdatasync(2) when that wrote everything, as one
// system call to the Go runtime, which gives the processor to others at once. n is
// what was written, call which of the two ended with errno.
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

// The two halves of a system call of which the Go runtime is told that it will
// block. The syscall package has no such call; the runtime keeps these for those
// who make their own (go.dev/issue/67401). Nothing between the two may grow the
// stack or need the runtime.

//go:linkname entersyscallblock runtime.entersyscallblock
func entersyscallblock()

//go:linkname exitsyscall runtime.exitsyscall
func exitsyscall()
