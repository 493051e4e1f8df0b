package vfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MkdirSynced creates a directory and its missing parents, and makes them durable: a
// new directory is an entry in its parent, which MkdirSynced syncs.
func MkdirSynced(fsys FS, dir string) error {
	st, err := fsys.Stat(dir)
	if err == nil {
		if _, err := fsys.ReadDir(dir); st.Mode()&fs.ModeSymlink != 0 && err == nil {
			return nil
		}
		if !st.IsDir() {
			return fmt.Errorf("%s is not a directory", dir)
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := MkdirSynced(fsys, parent); err != nil {
		return err
	}
	if err := fsys.Mkdir(dir, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(parent)
}

// SyncFile makes a file durable that other code has written.
func SyncFile(fsys FS, path string) error {
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Exists reports whether there is a file or a directory at path.
func Exists(fsys FS, path string) (bool, error) {
	_, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// WriteFile writes b to a file, creates the file if necessary, and fsyncs it. It
// replaces the old content. It doesn't make the directory entry durable.
func WriteFile(fsys FS, path string, b []byte, perm fs.FileMode) error {
	f, err := fsys.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// ReplaceFile replaces the content of a file with b atomically: after a power failure the
// file has either the new or the old content.
func ReplaceFile(fsys FS, path string, b []byte, perm fs.FileMode) error {
	if err := WriteFile(fsys, path+".tmp", b, perm); err != nil {
		return err
	}
	if err := fsys.Rename(path+".tmp", path); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// writebacker is a File that can start writing to the disk in the background.
type writebacker interface {
	startWriteback(off, n int64) error
}

// StartWriteback asks the system to start writing a part of a file to the disk, if it can,
// and doesn't wait. It makes nothing durable. We use it so that a later Sync of a large
// file has little left to write, and doesn't delay the syncs of other files.
func StartWriteback(f File, off, n int64) {
	if w, ok := f.(writebacker); ok {
		_ = w.startWriteback(off, n) // Sync reports any disk error
	}
}

// willReader is a File that the system can read ahead from the disk.
type willReader interface{ willRead() error }

// WillRead asks the system to start reading a file from the disk, if it can, and
// doesn't wait. The caller is about to read the file from its beginning.
func WillRead(f File) {
	if r, ok := f.(willReader); ok {
		_ = r.willRead() // reading reports any disk error
	}
}
