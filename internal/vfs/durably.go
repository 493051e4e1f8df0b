package vfs

import (
	"io"
	"sync/atomic"
)

// LongWrite is from how many bytes on a durable write takes so long that its goroutine
// gives up the processor of the Go runtime which it has, so that others use it at once.
// To give it up costs the write some 30 µs.
//
// The runtime lets a goroutine keep it in a system call, and takes it away when it
// finds that the call takes long: after 20 µs at the earliest, in zkgo server after
// half a millisecond (cmd/zkgo/monitor_linux.go). For a short write that is right:
// the goroutine goes on at once when it returns. While a long one is under way, half
// of a machine with two processors would stand still.
const LongWrite = 64 << 10

// givesUpFrom is what GiveUpProcessor was told, less LongWrite: 0 when it was told nothing.
var givesUpFrom atomic.Int64

// GiveUpProcessor decides, for the whole process, from how many bytes on a durable write
// gives up the processor of its goroutine: LongWrite, unless something else is better.
// Where there is but one processor, and more to do than to wait for the write, each one
// should; where all that there is to do waits for the write, none. It has a meaning on
// Linux only.
func GiveUpProcessor(from int) { givesUpFrom.Store(int64(from) - LongWrite) }

// givesUp says whether a durable write of n bytes gives up the processor.
func givesUp(n int) bool { return int64(n)-LongWrite >= givesUpFrom.Load() }

// durableWriter is a File that has a better way to write durably than WriteAt and
// Datasync.
type durableWriter interface {
	writeDurably(b []byte, off int64) error
}

// WriteDurably writes b at off and makes it durable, as WriteAt and Datasync do.
func WriteDurably(f File, b []byte, off int64) error {
	if d, ok := f.(durableWriter); ok {
		return d.writeDurably(b, off)
	}
	n, err := f.WriteAt(b, off)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return err
	}
	return f.Datasync()
}
