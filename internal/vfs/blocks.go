package vfs

import "unsafe"

// BlockSize is a multiple of what any disk wants writes past the page cache to be
// aligned to.
const BlockSize = 4096

// Blocks returns an empty slice with room for n bytes or more, whose memory is
// aligned for files that were opened with Direct.
func Blocks(n int) []byte {
	n = int(BlockEnd(int64(n)))
	b := make([]byte, n+BlockSize)
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % BlockSize)
	return b[skip : skip : skip+n]
}

// BlockStart returns where the block begins that an offset lies in.
func BlockStart(off int64) int64 { return off &^ (BlockSize - 1) }

// BlockEnd returns off, or where the next block begins when off lies within one.
func BlockEnd(off int64) int64 { return BlockStart(off + BlockSize - 1) }
