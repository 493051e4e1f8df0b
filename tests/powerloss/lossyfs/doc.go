// Package lossyfs is a file system that loses what was not fsynced.
//
// Disk is the model: what a write changes is lost unless the file is fsynced,
// what creating, renaming or removing changes is lost unless the directory is
// fsynced, and fsyncing a file does nothing for the directory entry that leads
// to it. That is less than most file systems guarantee and all that POSIX does.
//
// A Disk records every operation. Replaying the first n of them gives the disk
// as it was then, and Export writes what a power cut at that moment leaves
// behind. One run of a program can so be cut at each of its system calls.
//
// Mount makes a Disk a mounted file system, over FUSE; the program under test
// must run in another process, because a page fault in a mapped file would
// have to be served by the process that stands still in it.
//
// May import: go-fuse, the standard library; nothing of this module.
package lossyfs
