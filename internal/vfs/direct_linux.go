package vfs

import "syscall"

// Direct is a flag for OpenFile: reads and writes go past the page cache, if the
// file system can do that. Memory, offsets and lengths of writes have to be
// multiples of BlockSize then; room made by Blocks is.
const Direct = syscall.O_DIRECT
