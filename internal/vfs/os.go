package vfs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// OS is the file system of the operating system.
type OS struct{}

var _ FS = OS{}

// osFile is a file of the operating system.
type osFile struct{ *os.File }

// Datasync implements File.
func (f osFile) Datasync() error { return datasync(f.File) }

// OpenFile implements FS.
func (OS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if flag&Direct != 0 && errors.Is(err, syscall.EINVAL) { // this file system doesn't support O_DIRECT
		f, err = os.OpenFile(name, flag&^Direct, perm)
	}
	if err != nil {
		return nil, err // not f: a nil *os.File is not a nil File
	}
	return osFile{f}, nil
}

// ReadDir implements FS.
func (OS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }

// Mkdir implements FS.
func (OS) Mkdir(name string, perm fs.FileMode) error { return os.Mkdir(name, perm) }

// Stat implements FS.
func (OS) Stat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// Rename implements FS.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// Remove implements FS.
func (OS) Remove(name string) error { return os.Remove(name) }

// RemoveAll implements FS.
func (OS) RemoveAll(name string) error { return os.RemoveAll(name) }

// SyncDir implements FS.
func (OS) SyncDir(name string) error { return syncDir(name) }

// Lock implements FS.
func (OS) Lock(name string) (io.Closer, error) { return lock(name) }

// Database implements FS.
func (OS) Database(name string) (path string, lazy bool, err error) { return name, false, nil }

// Commit implements FS: bbolt syncs by itself.
func (OS) Commit(_ string, f func() error) error { return f() }
