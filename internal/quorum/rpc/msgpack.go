package rpc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Raft's messages are encoded in msgpack. This file implements the subset that they use,
// with a limit on everything. We compare a length with its limit before we allocate
// memory for it, and the memory for a long field grows only as its bytes arrive.

const (
	// fieldStep is the initial allocation for a long field, before its bytes arrive.
	fieldStep = 1 << 20
	// maxFields bounds the fields of one record, including unknown ones.
	maxFields = 64
	// maxKey bounds the name of a field.
	maxKey = 32
	// maxUnknown bounds a field that this server doesn't know.
	maxUnknown = 4 << 10
	// maxDepth bounds the nesting of unknown fields.
	maxDepth = 8
)

// ErrTooLong is returned for a message with a field beyond its limit.
var ErrTooLong = errors.New("it exceeds its limit")

var errMsgpack = errors.New("it is not msgpack of the expected type")

// Reader decodes msgpack. After an error it returns zero values; err is the first error.
type Reader struct {
	r   *bufio.Reader
	err error
	// reserve is called before n more bytes are allocated; nil allows everything.
	reserve func(n int) error
}

// NewReader returns a Reader that calls reserve before it allocates n more bytes, and
// fails if that returns an error.
func NewReader(r *bufio.Reader, reserve func(n int) error) *Reader {
	return &Reader{r: r, reserve: reserve}
}

func (d *Reader) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

func (d *Reader) byte() byte {
	if d.err != nil {
		return 0
	}
	b, err := d.r.ReadByte()
	if err != nil {
		d.fail(cut(err))
	}
	return b
}

// cut maps EOF within a message to a separate error: EOF is the orderly end of a stream
// only between messages.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// number reads a big-endian integer of n bytes.
func (d *Reader) number(n int) uint64 {
	var v uint64
	for range n {
		v = v<<8 | uint64(d.byte())
	}
	return v
}

// uint reads a non-negative integer; nil is 0.
func (d *Reader) uint() uint64 {
	v, negative := d.integer()
	if negative {
		d.fail(fmt.Errorf("%w: a negative number", errMsgpack))
		return 0
	}
	return v
}

func (d *Reader) integer() (v uint64, negative bool) {
	switch c := d.byte(); {
	case d.err != nil, c == 0xc0:
		return 0, false
	case c <= 0x7f:
		return uint64(c), false
	case c >= 0xe0:
		return uint64(int64(int8(c))), true
	case c >= 0xcc && c <= 0xcf:
		return d.number(1 << (c - 0xcc)), false
	case c >= 0xd0 && c <= 0xd3:
		size := 1 << (c - 0xd0)
		shift := 64 - 8*size
		s := int64(d.number(size)<<shift) >> shift
		return uint64(s), s < 0
	}
	d.fail(fmt.Errorf("%w: not an integer", errMsgpack))
	return 0, false
}

func (d *Reader) bool() bool {
	switch d.byte() {
	case 0xc2, 0xc0:
		return false
	case 0xc3:
		return true
	}
	d.fail(fmt.Errorf("%w: not a boolean", errMsgpack))
	return false
}

// count reads the header of a map or an array. Its short form starts at fix and its two
// long forms start at long. nil means empty.
func (d *Reader) count(fix, long byte, limit int) int {
	var n uint64
	switch c := d.byte(); {
	case d.err != nil, c == 0xc0:
		return 0
	case c&0xf0 == fix:
		n = uint64(c & 0x0f)
	case c == long:
		n = d.number(2)
	case c == long+1:
		n = d.number(4)
	default:
		d.fail(fmt.Errorf("%w: not a list or a map", errMsgpack))
		return 0
	}
	if n > uint64(limit) {
		d.fail(fmt.Errorf("%w: %d elements, the limit is %d", ErrTooLong, n, limit))
		return 0
	}
	return int(n)
}

func (d *Reader) mapLen() int            { return d.count(0x80, 0xde, maxFields) }
func (d *Reader) arrayLen(limit int) int { return d.count(0x90, 0xdc, limit) }
func (d *Reader) text(limit int) string  { return string(d.bytes(limit)) }
func (d *Reader) key() string            { return d.text(maxKey) }
func (d *Reader) length(c byte) (n uint64, ok bool) {
	switch {
	case c&0xe0 == 0xa0:
		return uint64(c & 0x1f), true
	case c == 0xd9 || c == 0xc4:
		return d.number(1), true
	case c == 0xda || c == 0xc5:
		return d.number(2), true
	case c == 0xdb || c == 0xc6:
		return d.number(4), true
	}
	return 0, false
}

// bytes reads a string or a byte array of at most limit bytes; nil is nil.
func (d *Reader) bytes(limit int) []byte {
	c := d.byte()
	if d.err != nil || c == 0xc0 {
		return nil
	}
	n, ok := d.length(c)
	switch {
	case d.err != nil:
		return nil
	case !ok:
		d.fail(fmt.Errorf("%w: not a string or bytes", errMsgpack))
		return nil
	case n > uint64(limit):
		d.fail(fmt.Errorf("%w: a field of %d bytes, the limit is %d", ErrTooLong, n, limit))
		return nil
	}
	return d.take(int(n))
}

// take returns the next n bytes.
func (d *Reader) take(n int) []byte {
	b := make([]byte, 0, min(n, fieldStep))
	for at := 0; ; {
		if d.reserve != nil {
			if err := d.reserve(cap(b) - at); err != nil {
				d.fail(err)
				return nil
			}
		}
		b = b[:min(n, cap(b))]
		if _, err := io.ReadFull(d.r, b[at:]); err != nil {
			d.fail(cut(err))
			return nil
		}
		if at = len(b); at == n {
			return b
		}
		larger := make([]byte, at, min(n, 2*at))
		copy(larger, b)
		b = larger
	}
}

// skip skips a value of any type.
func (d *Reader) skip() {
	left := maxUnknown
	d.skipped(&left, maxDepth)
}

func (d *Reader) skipped(left *int, depth int) {
	if *left--; *left < 0 || depth == 0 {
		d.fail(fmt.Errorf("%w: an unknown field", ErrTooLong))
	}
	if d.err != nil {
		return
	}
	c := d.byte()
	elements, size := 0, uint64(0)
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
	case c&0xf0 == 0x80:
		elements = 2 * int(c&0x0f)
	case c&0xf0 == 0x90:
		elements = int(c & 0x0f)
	case c == 0xdc || c == 0xdd, c == 0xde || c == 0xdf:
		n := d.number(2 << (c & 1))
		elements = int(min(n, math.MaxInt32)) * (1 + int(c>>1&1))
	case c >= 0xc7 && c <= 0xc9: // an extension, which has a type byte
		size = d.number(1<<(c-0xc7)) + 1
	case c >= 0xd4 && c <= 0xd8:
		size = 1<<(c-0xd4) + 1
	case c == 0xca:
		size = 4
	case c == 0xcb:
		size = 8
	case c >= 0xcc && c <= 0xd3:
		size = 1 << (c & 3)
	default:
		var ok bool
		if size, ok = d.length(c); !ok {
			d.fail(fmt.Errorf("%w: byte %#x", errMsgpack, c))
		}
	}
	d.discard(left, size)
	for ; elements > 0 && d.err == nil; elements-- {
		d.skipped(left, depth-1)
	}
}

func (d *Reader) discard(left *int, size uint64) {
	if size > uint64(max(*left, 0)) {
		d.fail(fmt.Errorf("%w: an unknown field", ErrTooLong))
	}
	if d.err != nil || size == 0 {
		return
	}
	*left -= int(size)
	if _, err := d.r.Discard(int(size)); err != nil {
		d.fail(cut(err))
	}
}

// The functions below append msgpack.

func appendMap(b []byte, fields int) []byte { return append(b, 0x80|byte(fields)) }

func appendText(b []byte, s string) []byte { return appendRaw(b, []byte(s)) }

// appendRaw appends bytes in the form that both old and new decoders accept.
func appendRaw(b, v []byte) []byte {
	switch n := len(v); {
	case v == nil:
		return append(b, 0xc0)
	case n < 32:
		b = append(b, 0xa0|byte(n))
	case n < 1<<16:
		b = binary.BigEndian.AppendUint16(append(b, 0xda), uint16(n))
	default:
		b = binary.BigEndian.AppendUint32(append(b, 0xdb), uint32(n))
	}
	return append(b, v...)
}

func appendUint(b []byte, v uint64) []byte {
	if v < 0x80 {
		return append(b, byte(v))
	}
	return binary.BigEndian.AppendUint64(append(b, 0xcf), v)
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 0xc3)
	}
	return append(b, 0xc2)
}
