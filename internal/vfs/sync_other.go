//go:build !unix

package vfs

import (
	"io"
	"io/fs"
	"os"
)

// syncDir does nothing, because this system can't fsync directories.
func syncDir(string) error { return nil }

// sole implements shrinker. We can't find out on this system, so it returns false.
func (f osFile) sole(fs.FileInfo) bool { return false }

// lock only keeps the file open, because this system has no flock.
func lock(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o640)
}
