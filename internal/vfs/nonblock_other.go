//go:build !unix

package vfs

// nonBlock is a flag for OpenFile on systems with FIFOs in the file system.
const nonBlock = 0
