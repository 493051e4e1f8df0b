package vfs

import "syscall"

// syncFileRangeWrite is SYNC_FILE_RANGE_WRITE of sync_file_range(2).
const syncFileRangeWrite = 2

// startWriteback implements writebacker.
func (f osFile) startWriteback(off, n int64) error {
	return syscall.SyncFileRange(int(f.Fd()), off, n, syncFileRangeWrite)
}
