package vfs

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxReadFile is the size in bytes of the largest file that ReadFile accepts. The files
// that a server reads whole, e.g. its identity, have at most a few kilobytes.
const MaxReadFile = 16 << 20

// ErrNotSmall is the cause when ReadFile refuses a file: it is larger than MaxReadFile,
// or it is a FIFO, a device or another special file, which may have no end.
var ErrNotSmall = errors.New("not a regular file of at most 16 MiB")

// ReadFile returns the content of a small regular file. A data directory can contain
// anything, e.g. a link to a device, so we refuse any other file with ErrNotSmall.
func ReadFile(fsys FS, path string) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY|nonBlock, 0)
	if err != nil {
		return nil, err
	}
	b, err := readSmall(f)
	if errors.Is(err, ErrNotSmall) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return b, errors.Join(err, f.Close())
}

func readSmall(f File) ([]byte, error) {
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("%w: its mode is %v", ErrNotSmall, st.Mode())
	}
	b, err := io.ReadAll(io.LimitReader(f, MaxReadFile+1))
	if err == nil && len(b) > MaxReadFile {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrNotSmall, max(st.Size(), int64(len(b))))
	}
	return b, err
}
