package raftlog

import (
	"fmt"
	"path/filepath"

	"github.com/zkgo/zkgo/internal/vfs"
)

// createAtomic creates a database atomically: write gets a temporary name, and the file
// that it leaves there is fsynced and renamed.
func createAtomic(fsys vfs.FS, path string, write func(tmp string) error) error {
	tmp := path + ".tmp"
	if err := fsys.RemoveAll(tmp); err != nil {
		return err
	}
	if err := write(tmp); err != nil {
		return fmt.Errorf("creating %s: %w", path, err)
	}
	if err := vfs.SyncFile(fsys, tmp); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, path); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}
