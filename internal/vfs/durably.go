package vfs

import (
	"io"
	"sync/atomic"
)

// LongWrite is the size in bytes from which a durable write gives up its goroutine's
// processor (P) in the Go runtime, so that other goroutines can use it immediately.
// Giving it up costs the write about 30 µs.
//
// The runtime lets a goroutine keep its P in a system call and takes it away if the
// call takes long: after 20 µs at the earliest, in zkgo server after half a
// millisecond (cmd/zkgo/monitor_linux.go). This is right for a short write, whose
// goroutine continues immediately when the call returns. During a long write, half of
// a machine with two CPUs would be idle.
const LongWrite = 64 << 10

// givesUpFrom is the argument of GiveUpProcessor minus LongWrite, 0 before the first
// call.
var givesUpFrom atomic.Int64

// GiveUpProcessor sets, for the whole process, the size in bytes from which a durable
// write gives up its goroutine's processor. The default is LongWrite. With one
// processor and work that doesn't depend on the write, every write should give it up;
// if all work waits for the write, none should. It has an effect on Linux only.
func GiveUpProcessor(from int) { givesUpFrom.Store(int64(from) - LongWrite) }

// givesUp reports whether a durable write of n bytes gives up the processor.
func givesUp(n int) bool { return int64(n)-LongWrite >= givesUpFrom.Load() }

// durableWriter is a File with a better way to write durably than WriteAt and
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
