//go:build !linux

package vfs

// Direct is a flag for OpenFile: reads and writes go past the page cache, if the
// file system can do that. Here none can.
const Direct = 0
