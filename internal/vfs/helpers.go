package vfs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MkdirSynced makes a directory and those above it, and makes sure they are
// still there after a power cut: a new directory is an entry in its parent.
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

// SyncFile makes a file that was written by somebody else durable.
func SyncFile(fsys FS, path string) error {
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Exists says whether there is a file or a directory with the name.
func Exists(fsys FS, path string) (bool, error) {
	_, err := fsys.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// ReadFile returns what is in a file.
func ReadFile(fsys FS, path string) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(f)
	return b, errors.Join(err, f.Close())
}

// WriteFile makes a file with the content b, or replaces what is in it, and
// fsyncs it. Its directory entry is not made durable.
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

// ReplaceFile gives a file the content b: after a power cut it has this one or
// the one before.
func ReplaceFile(fsys FS, path string, b []byte, perm fs.FileMode) error {
	if err := WriteFile(fsys, path+".tmp", b, perm); err != nil {
		return err
	}
	if err := fsys.Rename(path+".tmp", path); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// writebacker is a File whose writing to the disk can be started.
type writebacker interface {
	startWriteback(off, n int64) error
}

// StartWriteback lets the system begin to write a part of a file to the disk, if
// it can, and does not wait for that. It makes nothing durable: a Sync of a large
// file that is on the disk already holds up nobody else's, and that is all.
func StartWriteback(f File, off, n int64) {
	if w, ok := f.(writebacker); ok {
		_ = w.startWriteback(off, n) // what is wrong with the disk, the Sync will say
	}
}

// willReader is a File of which the system can begin to read what is on the disk.
type willReader interface{ willRead() error }

// WillRead lets the system begin to read a file, if it can, and does not wait for
// that: it is about to be read from its beginning.
func WillRead(f File) {
	if r, ok := f.(willReader); ok {
		_ = r.willRead() // what is wrong with the disk, the reading will say
	}
}
