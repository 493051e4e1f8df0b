// Package vfs is what a server's files lie on: the operating system's file
// system, or one in memory that a test can take the power from.
//
// A server writes all that must survive through an FS. Its databases are the
// exception: bbolt maps its file into memory and writes it itself, so an FS says
// where the kernel finds that file, and is told when a transaction commits.
//
// May import: the standard library only.
package vfs
