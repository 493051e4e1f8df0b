package disk

import (
	"io"
	"sync/atomic"
)

// givesUp says that a goroutine gives up its processor for every durable write.
var givesUp atomic.Bool

// GiveUpProcessor decides, for the whole process, whether a goroutine that writes
// durably gives up the processor of the Go runtime which it has, so that others use it
// at once. It costs the write some 30 µs: where there is but one processor, and more to
// do than to wait for the write, that is less than what the others lose. Long writes
// always do. It has a meaning on Linux only.
func GiveUpProcessor(always bool) { givesUp.Store(always) }

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
