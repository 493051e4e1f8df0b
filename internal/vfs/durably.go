package vfs

import "io"

// WriteDurably writes b at off and makes it durable.
func WriteDurably(f File, b []byte, off int64) error {
	n, err := f.WriteAt(b, off)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return err
	}
	return f.Datasync()
}
