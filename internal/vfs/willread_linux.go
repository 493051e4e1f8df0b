package vfs

import "syscall"

// fadvWillNeed is POSIX_FADV_WILLNEED of posix_fadvise(2).
const fadvWillNeed = 3

// willRead implements willReader.
func (f osFile) willRead() error {
	if _, _, errno := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, fadvWillNeed, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
