// Package vfs is the file system that a server uses: the operating system's, or one in
// memory on which a test can simulate a power failure.
//
// A server writes everything that must survive through an FS. A log of kind bolt is the
// exception: bbolt maps its file into memory and writes it itself, so we return the path of
// that file for the kernel, and run each commit.
//
// May import: the standard library; of this module only storage.
package vfs
