//go:build !linux

package vfs

// Direct is a flag for OpenFile: reads and writes bypass the page cache if the file
// system supports that. On this system none does.
const Direct = 0
