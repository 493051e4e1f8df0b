package vfs

import "github.com/zkgo/zkgo/storage"

// FS is a file system, as embedding programs know it.
type FS = storage.FS

// File is one of its files.
type File = storage.File
