//go:build !unix

package logstore

import (
	"os"
	"path/filepath"
)

// syncDir does nothing where directories cannot be fsynced.
func syncDir(string) error { return nil }

// lockDir only keeps the file open: there is no flock here.
func lockDir(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o640)
}
