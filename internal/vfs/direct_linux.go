package vfs

import "syscall"

// Direct is a flag for OpenFile: reads and writes bypass the page cache if the file
// system supports that. Memory, offsets and lengths of writes must then be multiples
// of BlockSize. Memory from Blocks is.
const Direct = syscall.O_DIRECT
