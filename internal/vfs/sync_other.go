//go:build !unix

package vfs

import (
	"io"
	"io/fs"
	"os"
)

// syncDir does nothing where directories cannot be fsynced.
func syncDir(string) error { return nil }

// sole implements shrinker: who knows.
func (f osFile) sole(fs.FileInfo) bool { return false }

// lock only keeps the file open: there is no flock here.
func lock(path string) (io.Closer, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o640)
}
