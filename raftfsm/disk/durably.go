package disk

import "io"

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
