package zkfiles

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/adler32"
	"io"
	"unicode/utf8"

	"github.com/zkgo/zkgo/internal/zab"
	"github.com/zkgo/zkgo/proto"
)

// askEvery is how many bytes of content are read between two calls of Limits.Room and Progress.
const askEvery = 1 << 20

// DefaultMaxField is the default maximum length of a field in bytes. We use a value larger
// than any jute.maxbuffer with which ZooKeeper works well.
const DefaultMaxField = 64 << 20

// Limits limits the resources used to read a file. A compressed file can expand to a
// thousand times its size, so the file size isn't a limit.
type Limits struct {
	// MaxField is the maximum length of a path, data or identity in bytes; 0 means
	// DefaultMaxField. ZooKeeper accepts the sum of jute.maxbuffer and
	// jute.maxbuffer.extrasize.
	MaxField int
	// Room is called after every MiB of content. If it returns an error, reading ends
	// with that error. It may be nil.
	Room func() error
	// Progress receives, after every MiB of content and at the end of a body, how many bytes and
	// znodes have been read. It may be nil.
	Progress func(bytes int64, znodes int)
}

func (l Limits) maxField() int {
	if l.MaxField <= 0 {
		return DefaultMaxField
	}
	return l.MaxField
}

// ErrTooLong is the error for a field longer than Limits.MaxField.
var ErrTooLong = errors.New("longer than jute.maxbuffer allows: if the file is right, set jute.maxbuffer to what its source used (--set jute.maxbuffer=BYTES)")

// source reads jute from a stream. The first error sticks: later calls return zero
// values, and err contains the offset.
type source struct {
	name string
	r    *bufio.Reader
	Limits
	asked int64       // offset of the last call of Limits.Room and Progress
	taken int         // znodes read
	sum   hash.Hash32 // Adler-32 of all bytes read
	off   int64
	err   error
	word  [8]byte
}

func newSource(name string, r io.Reader, l Limits) *source {
	return &source{name: name, Limits: l, r: bufio.NewReaderSize(r, 256<<10), sum: adler32.New()}
}

// fail sets err unless an earlier error did. It turns an early io.EOF into
// io.ErrUnexpectedEOF.
func (s *source) fail(err error) {
	if s.err == nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		s.err = fmt.Errorf("%s: at offset %d: %w", s.name, s.off, err)
	}
}

// fill reads len(b) bytes.
func (s *source) fill(b []byte) bool {
	if s.err != nil {
		return false
	}
	if _, err := io.ReadFull(s.r, b); err != nil {
		s.fail(err)
		return false
	}
	s.off += int64(len(b))
	s.sum.Write(b)
	if s.off-s.asked < askEvery {
		return true
	}
	s.asked = s.off
	s.tell()
	if s.Room != nil {
		if err := s.Room(); err != nil {
			s.fail(err)
			return false
		}
	}
	return true
}

// tell calls Limits.Progress.
func (s *source) tell() {
	if s.Progress != nil {
		s.Progress(s.off, s.taken)
	}
}

func (s *source) int() int32 {
	if !s.fill(s.word[:4]) {
		return 0
	}
	return int32(binary.BigEndian.Uint32(s.word[:4]))
}

func (s *source) long() int64 {
	if !s.fill(s.word[:8]) {
		return 0
	}
	return int64(binary.BigEndian.Uint64(s.word[:8]))
}

// bytes reads a buffer into new memory. Null is nil; empty isn't.
func (s *source) bytes(what string) []byte {
	n := int(s.int())
	switch {
	case s.err != nil || n == -1:
		return nil
	case n < 0:
		s.fail(fmt.Errorf("%s of negative length %d", what, n))
		return nil
	case n > s.maxField():
		s.fail(fmt.Errorf("%s of %d bytes: %w", what, n, ErrTooLong))
		return nil
	}
	b, _ := zab.ReadUpTo(filler{s}, n)
	if s.err != nil {
		return nil
	}
	return b
}

// filler is a source as an io.Reader: it reads all that fits, or fails.
type filler struct{ *source }

// Read implements io.Reader.
func (f filler) Read(b []byte) (int, error) {
	if !f.fill(b) {
		return 0, f.err
	}
	return len(b), nil
}

// string reads a string that must not be null.
func (s *source) string(what string) string {
	v := s.nullable(what)
	if v == proto.NullString {
		s.fail(fmt.Errorf("%s is null", what))
		return ""
	}
	return v
}

// nullable reads a string. Null is proto.NullString.
func (s *source) nullable(what string) string {
	b := s.bytes(what)
	switch {
	case s.err != nil:
		return ""
	case b == nil:
		return proto.NullString
	case !utf8.Valid(b):
		return proto.JavaString(b)
	}
	return string(b)
}

// count reads a number of elements. Java treats a negative number as zero, but we return an
// error, because no version of ZooKeeper writes one.
func (s *source) count(what string) int {
	n := s.int()
	if s.err == nil && n < 0 {
		s.fail(fmt.Errorf("%d %s", n, what))
	}
	return int(n)
}

// seal compares the checksum at this position with the checksum of all previous bytes.
func (s *source) seal(part string) {
	have := s.sum.Sum32()
	at := s.off
	want := s.long()
	end := s.string("the end mark of " + part)
	switch {
	case s.err != nil:
	case want != int64(have):
		s.err = fmt.Errorf("%s: at offset %d: %s has the checksum %#x, but its content has %#x", s.name, at, part, want, have)
	case end != "/":
		s.err = fmt.Errorf("%s: at offset %d: %s ends with %q instead of \"/\"", s.name, at+8, part, end)
	}
}

// more reports whether there are more bytes.
func (s *source) more() bool {
	if s.err != nil {
		return false
	}
	_, err := s.r.Peek(1)
	if err != nil && !errors.Is(err, io.EOF) {
		s.fail(err)
	}
	return err == nil
}

// sink writes jute to a stream. Callers append records to buf, and flush writes them.
// The first error sticks.
type sink struct {
	w   *bufio.Writer
	sum hash.Hash32
	buf []byte
	err error
}

func newSink(w io.Writer) *sink {
	return &sink{w: bufio.NewWriterSize(w, 256<<10), sum: adler32.New()}
}

func (s *sink) flush() {
	if s.err == nil {
		s.sum.Write(s.buf)
		_, s.err = s.w.Write(s.buf)
	}
	s.buf = s.buf[:0]
}

// seal writes the checksum of all previous bytes.
func (s *sink) seal() {
	s.flush()
	s.buf = proto.AppendLong(s.buf, int64(s.sum.Sum32()))
	s.buf = proto.AppendString(s.buf, "/")
	s.flush()
}
