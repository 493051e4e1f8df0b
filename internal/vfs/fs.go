package vfs

import "github.com/zkgo/zkgo/storage"

// FS is the public interface of a file system.
type FS = storage.FS

// File is an open file of an FS.
type File = storage.File
