package vfs

import "unsafe"

// BlockSize is a multiple of the alignment that any disk requires for writes past the
// page cache.
const BlockSize = 4096

// Blocks returns an empty slice with a capacity of at least n bytes. Its memory is
// aligned as files opened with Direct require.
func Blocks(n int) []byte {
	n = int(BlockEnd(int64(n)))
	b := make([]byte, n+BlockSize)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % BlockSize)
	return b[skip : skip : skip+n]
}

// BlockStart returns the start of the block that contains off.
func BlockStart(off int64) int64 { return off &^ (BlockSize - 1) }

// BlockEnd returns off if it is the start of a block, and otherwise the start of the
// next block.
func BlockEnd(off int64) int64 { return BlockStart(off + BlockSize - 1) }
