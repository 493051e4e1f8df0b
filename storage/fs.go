package storage

import (
	"errors"
	"io"
	"io/fs"
)

// ErrInUse is the cause of Lock's error while another server holds the lock.
var ErrInUse = errors.New("in use by another server")

// FS is a file system. Names are paths of the operating system, and errors are the same
// as in package os. All methods are safe for concurrent use.
type FS interface {
	// OpenFile accepts the flags of package os, except O_APPEND. On Linux it also accepts
	// syscall.O_DIRECT, which it may ignore.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Mkdir(name string, perm fs.FileMode) error
	// Stat does not follow a symbolic link at the end of the name.
	Stat(name string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(name string) error
	RemoveAll(name string) error
	// SyncDir makes the directory's entries durable.
	SyncDir(name string) error
	// Lock locks name until the lock is closed or the process ends. It excludes other
	// processes and other callers in this process. Lock creates the file if it doesn't
	// exist.
	Lock(name string) (io.Closer, error)

	// Database returns the path at which the kernel finds the file, for bbolt. If
	// lazy is true, bbolt need not sync, because Commit does all that is necessary.
	Database(name string) (path string, lazy bool, err error)
	// Commit runs f, which commits at most one transaction to the database in the
	// file. Commit returns when the transaction is durable.
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
	// Datasync makes the content durable, and as much of the metadata as a reader
	// needs.
	Datasync() error
}
