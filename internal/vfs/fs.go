package vfs

import (
	"errors"
	"io"
	"io/fs"
)

// ErrInUse is the cause when a lock is held by another server.
var ErrInUse = errors.New("in use by another server")

// FS is a file system. Names are paths of the operating system; errors are
// those of package os. All methods may be called by many goroutines.
type FS interface {
	// OpenFile takes the flags of package os, without O_APPEND, and Direct.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Mkdir(name string, perm fs.FileMode) error
	// Stat does not follow a symbolic link at the end of the name.
	Stat(name string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(name string) error
	RemoveAll(name string) error
	// SyncDir makes the entries of a directory durable.
	SyncDir(name string) error
	// Lock keeps everybody else from locking the same name until it is closed
	// or the process ends. The file is made if it is missing.
	Lock(name string) (io.Closer, error)

	// Database says where the kernel finds the file with the name, for bbolt.
	// With lazy, bbolt need not sync: Commit does what there is to do.
	Database(name string) (path string, lazy bool, err error)
	// Commit runs f, which commits at most one transaction to the database in
	// the file, and returns when that is durable.
	Commit(name string, f func() error) error
}

// File is an open file.
type File interface {
	io.ReadWriteSeeker
	io.ReaderAt
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	// Sync makes the content and the metadata durable.
	Sync() error
	// Datasync makes the content durable, and as much of the metadata as
	// reading it takes.
	Datasync() error
}
