package vfs

import "github.com/zkgo/zkgo/storage"

// The file system and its files, as embedding programs know them.
type (
	FS   = storage.FS
	File = storage.File
)
