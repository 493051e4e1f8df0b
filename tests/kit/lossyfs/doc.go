// Package lossyfs is a file system that loses data that was not fsynced.
//
// Disk is the model: a write is lost unless the file is fsynced; a create, rename
// or remove is lost unless the directory is fsynced; and fsyncing a file does
// nothing for its directory entry. That is less than most file systems guarantee,
// and all that POSIX does.
//
// A Disk records every operation. Replaying the first n operations gives the disk as it was then,
// and Export writes the files that survive a power cut at that moment. This way, we can cut one run
// of a program at each of its system calls.
//
// Mount mounts a Disk as a file system, over FUSE. The program under test must run in
// another process: otherwise the process that is blocked in a page fault of a mapped file
// would have to serve that fault.
//
// May import: go-fuse, the standard library; nothing of this module.
package lossyfs
