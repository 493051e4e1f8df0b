package vfs

import (
	"io"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Long reads and writes and every Sync give up the goroutine's processor (P) in the
// Go runtime first, see LongWrite: a snapshot's state is written and read back while
// other goroutines have work to do.

// WriteAt implements File.
func (f osFile) WriteAt(b []byte, off int64) (int, error) {
	if len(b) < LongWrite {
		return f.File.WriteAt(b, off)
	}
	short := &os.PathError{Op: "write", Path: f.Name(), Err: io.ErrShortWrite}
	return f.all("write", syscall.SYS_PWRITE64, b, off, short)
}

// ReadAt implements File.
func (f osFile) ReadAt(b []byte, off int64) (int, error) {
	if len(b) < LongWrite {
		return f.File.ReadAt(b, off)
	}
	return f.all("read", syscall.SYS_PREAD64, b, off, io.EOF)
}

// all reads or writes all of b with the given system call. It returns short if a call
// transfers nothing.
func (f osFile) all(name string, call uintptr, b []byte, off int64, short error) (n int, err error) {
	for n < len(b) {
		k, err := f.patiently(name, call, b[n:], off+int64(n))
		switch {
		case err != nil:
			return n, err
		case k == 0:
			return n, short
		}
		n += k
	}
	return n, nil
}

// Read implements File.
func (f osFile) Read(b []byte) (int, error) {
	if len(b) < LongWrite {
		return f.File.Read(b)
	}
	n, err := f.patiently("read", syscall.SYS_READ, b, 0)
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

// Sync implements File.
func (f osFile) Sync() error {
	_, err := f.patiently("sync", syscall.SYS_FSYNC, nil, 0)
	return err
}

// patiently makes a system call on b, at off if the call takes an offset. It retries
// after EINTR.
func (f osFile) patiently(name string, call uintptr, b []byte, off int64) (int, error) {
	for {
		fd := f.Fd()
		n, errno := block(call, fd, unsafe.Pointer(unsafe.SliceData(b)), len(b), off)
		runtime.KeepAlive(b)
		runtime.KeepAlive(f.File)
		switch {
		case errno == 0:
			return n, nil
		case errno == syscall.EINTR:
		case fd == closedFile:
			return 0, &os.PathError{Op: name, Path: f.Name(), Err: fs.ErrClosed}
		default:
			return 0, &os.PathError{Op: name, Path: f.Name(), Err: errno}
		}
	}
}

// closedFile is the descriptor that Fd returns for a closed file.
const closedFile = ^uintptr(0)

// block makes a system call that the Go runtime knows will block, see pwriteSync.
//
//go:norace
//go:nosplit
func block(call, fd uintptr, p unsafe.Pointer, length int, off int64) (int, syscall.Errno) {
	entersyscallblock()
	r, _, errno := syscall.RawSyscall6(call, fd, uintptr(p), uintptr(length), uintptr(off), 0, 0)
	exitsyscall()
	return int(r), errno
}
