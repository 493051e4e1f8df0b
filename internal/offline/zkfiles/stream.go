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

	"github.com/zkgo/zkgo/proto"
)

// readStep is what a length is believed before bytes come.
const readStep = 1 << 20

// DefaultMaxField is the longest field that a reader without a limit of its own
// accepts, in bytes. It is above every jute.maxbuffer that ZooKeeper runs well with.
const DefaultMaxField = 64 << 20

// Limits bounds what reading a file may cost. A compressed file can hold a thousand
// times its own size, so its size says nothing.
type Limits struct {
	// MaxField is the longest path, data or identity in bytes; 0: DefaultMaxField.
	// ZooKeeper accepts jute.maxbuffer and jute.maxbuffer.extrasize together.
	MaxField int
	// Room is asked after every MiB of content, and ends the reading with its error. It
	// may be nil.
	Room func() error
}

func (l Limits) maxField() int {
	if l.MaxField <= 0 {
		return DefaultMaxField
	}
	return l.MaxField
}

// ErrTooLong is the cause when a field is longer than Limits.MaxField.
var ErrTooLong = errors.New("longer than jute.maxbuffer allows: if the file is right, set jute.maxbuffer to what its source used (--set jute.maxbuffer=BYTES)")

// source reads jute from a stream. The first error sticks: later calls return
// zero values, and err names the place.
type source struct {
	name string
	r    *bufio.Reader
	Limits
	asked int64       // offset at which Limits.Room was asked
	sum   hash.Hash32 // Adler-32 of everything read
	off   int64
	err   error
	word  [8]byte
}

func newSource(name string, r io.Reader, l Limits) *source {
	return &source{name: name, Limits: l, r: bufio.NewReaderSize(r, 256<<10), sum: adler32.New()}
}

// fail makes err stick unless an earlier error did. What ends too early is no
// clean end.
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
	if s.Room != nil && s.off-s.asked >= readStep {
		s.asked = s.off
		if err := s.Room(); err != nil {
			s.fail(err)
			return false
		}
	}
	return true
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

// bytes reads a buffer with memory of its own; null is nil, empty is not.
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
	b := make([]byte, 0, min(n, readStep))
	for len(b) < n {
		have := len(b)
		step := min(n-have, max(readStep, have))
		if cap(b) < have+step {
			b = append(make([]byte, 0, have+step), b...)
		}
		b = b[:have+step]
		if !s.fill(b[have:]) {
			return nil
		}
	}
	return b
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

// nullable reads a string; null is proto.NullString.
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

// count reads a number of elements. Where Java takes a negative one for none, it
// is an error here: no ZooKeeper writes it.
func (s *source) count(what string) int {
	n := s.int()
	if s.err == nil && n < 0 {
		s.fail(fmt.Errorf("%d %s", n, what))
	}
	return int(n)
}

// seal compares the checksum that stands here with that of all before it.
func (s *source) seal(part string) {
	have := s.sum.Sum32()
	at := s.off
	want := s.long()
	end := s.string("the end mark of " + part)
	switch {
	case s.err != nil:
	case want != int64(have):
		s.err = fmt.Errorf("%s: at offset %d: the checksum of %s is %#x, what is there has %#x", s.name, at, part, want, have)
	case end != "/":
		s.err = fmt.Errorf("%s: at offset %d: %s ends with %q instead of \"/\"", s.name, at+8, part, end)
	}
}

// more reports whether there is another byte.
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

// sink writes jute to a stream. Records are appended to buf and written by
// flush. The first error sticks.
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

// seal writes the checksum of all before it.
func (s *sink) seal() {
	s.flush()
	s.buf = proto.AppendLong(s.buf, int64(s.sum.Sum32()))
	s.buf = proto.AppendString(s.buf, "/")
	s.flush()
}
