package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// FileOptions sets the file for the lines, its size and the number of backups.
type FileOptions struct {
	Path string
	// MaxBytes is the size at which the file is renamed to Path.1, the previous
	// Path.1 to Path.2 and so on; 0 means 10 MiB, negative no limit.
	MaxBytes int64
	// Backups is the number of renamed files to keep; 0 means 10, negative none.
	Backups int
}

// The values in ZooKeeper's own logback.xml.
const (
	defaultMaxBytes = 10 << 20
	defaultBackups  = 10
)

// File returns a sink that appends lines in ZooKeeper's format to a file. It creates
// the file readable by its owner and group.
func File(o FileOptions) (Sink, error) {
	if o.Path == "" {
		return nil, ErrNoFile
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = defaultMaxBytes
	}
	if o.Backups == 0 {
		o.Backups = defaultBackups
	}
	f := &file{o: o}
	return f, f.open()
}

type file struct {
	o    FileOptions
	f    *os.File // nil after an error
	size int64
	buf  []byte
}

const fileMode = 0o640

func (s *file) open() error {
	f, err := os.OpenFile(s.o.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("audit log: %w", err), f.Close())
	}
	s.f, s.size = f, info.Size()
	return nil
}

// maxBuffered is the maximum number of bytes in one write.
const maxBuffered = 256 << 10

// Write implements Sink. It never splits a record between two files.
func (s *file) Write(records []Record) error {
	s.buf = s.buf[:0]
	for i := range records {
		before := len(s.buf)
		s.buf = records[i].appendLine(s.buf)
		full := s.o.MaxBytes > 0 && s.size+int64(len(s.buf)) > s.o.MaxBytes && s.size+int64(before) > 0
		switch {
		case full:
			line := append([]byte(nil), s.buf[before:]...)
			s.buf = s.buf[:before]
			if err := errors.Join(s.flush(), s.rotate()); err != nil {
				return err
			}
			s.buf = append(s.buf, line...)
		case len(s.buf) > maxBuffered:
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return s.flush()
}

// flush writes the buffer. After an error, we reopen the file at the next flush.
func (s *file) flush() error {
	if len(s.buf) == 0 {
		return nil
	}
	if s.f == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	n, err := s.f.Write(s.buf)
	s.size += int64(n)
	s.buf = s.buf[:0]
	if err != nil {
		return errors.Join(fmt.Errorf("audit log: %w", err), s.Close())
	}
	return nil
}

// rotate renames the current file and its backups.
func (s *file) rotate() error {
	if err := s.Close(); err != nil {
		return err
	}
	numbered := func(n int) string { return fmt.Sprintf("%s.%d", s.o.Path, n) }
	for n := s.o.Backups; n > 0; n-- {
		from := s.o.Path
		if n > 1 {
			from = numbered(n - 1)
		}
		if err := os.Rename(from, numbered(n)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("audit log: %w", err)
		}
	}
	if s.o.Backups < 0 {
		if err := os.Remove(s.o.Path); err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
	}
	return s.open()
}

// Close implements Sink.
func (s *file) Close() error {
	if s.f == nil {
		return nil
	}
	f := s.f
	s.f = nil
	if err := f.Close(); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}
