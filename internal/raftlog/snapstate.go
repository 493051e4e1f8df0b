package raftlog

import (
	"errors"
	"io"
	"os"

	"github.com/zkgo/zkgo/internal/vfs"
)

// writebackStep is the number of bytes after which the disk starts to write. If we wrote
// all of a snapshot at its end, we would delay the log, which is on the same disk.
const writebackStep = 1 << 20

// stateWriter writes the state of a snapshot. The first part goes through the page cache,
// where a restart finds it. The rest, if any, bypasses the page cache: copying it there
// would need more time than creating it, and would evict pages that other readers need.
type stateWriter struct {
	fs     vfs.FS
	path   string
	cached int64 // how much goes through the page cache

	f      vfs.File
	direct vfs.File // nil until something goes past the page cache
	buf    []byte   // not yet written; whole blocks when it is full
	off    int64    // offset of buf in the file
	begun  int64    // up to here writing to the disk has been started
}

// newStateWriter creates a file. Its first cached bytes go through the page cache.
func newStateWriter(fsys vfs.FS, path string, cached int64) (*stateWriter, error) {
	f, err := fsys.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o640)
	if err != nil {
		return nil, err
	}
	buf := vfs.Blocks(int(min(cached, snapBufferSize)))
	return &stateWriter{fs: fsys, path: path, cached: cached, f: f, buf: buf}, nil
}

// Write implements io.Writer.
func (s *stateWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		k := min(len(b), cap(s.buf)-len(s.buf))
		s.buf = append(s.buf, b[:k]...)
		b = b[k:]
		if len(s.buf) == cap(s.buf) {
			if err := s.flush(); err != nil {
				return n - len(b), err
			}
		}
	}
	return n, nil
}

// flush writes the full buffer.
func (s *stateWriter) flush() error {
	if s.off >= s.cached {
		return s.flushPast()
	}
	if err := s.writeTo(s.f); err != nil {
		return err
	}
	if s.off-s.begun >= writebackStep {
		vfs.StartWriteback(s.f, s.begun, s.off-s.begun)
		s.begun = s.off
	}
	return nil
}

// flushPast writes the buffer past the page cache.
func (s *stateWriter) flushPast() (err error) {
	if s.direct == nil {
		if s.direct, err = s.fs.OpenFile(s.path, os.O_WRONLY|vfs.Direct, 0); err != nil {
			return err
		}
	}
	return s.writeTo(s.direct)
}

// writeTo writes the buffer to f and empties it.
func (s *stateWriter) writeTo(f vfs.File) error {
	n, err := f.WriteAt(s.buf, s.off)
	if err == nil && n < len(s.buf) {
		err = io.ErrShortWrite
	}
	s.off += int64(n)
	s.buf = s.buf[:0]
	return err
}

// finish writes the rest of the buffer and makes the file durable.
func (s *stateWriter) finish() error {
	err := s.writeTo(s.f) // the end isn't a whole block
	if err == nil {
		err = s.f.Sync()
	}
	return errors.Join(err, s.close())
}

func (s *stateWriter) close() error {
	err := s.f.Close()
	if s.direct != nil {
		err = errors.Join(err, s.direct.Close())
	}
	return err
}
