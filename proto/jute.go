package proto

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
	"unsafe"
)

// NullString represents jute's null string (length −1). It is not valid UTF-8. We replace
// invalid UTF-8 when we decode, so no string from the wire can equal it.
const NullString = "\xff"

// ErrShort reports a record that ends before its last field.
var ErrShort = errors.New("proto: record ends early")

// A Reader decodes jute primitives from one frame. The first error is sticky:
// every later call returns zero values, so a decoder can read all its fields
// and check Err once. The zero Reader reads an empty frame.
//
// A Reader is not safe for concurrent use.
type Reader struct {
	buf   []byte
	off   int
	err   error
	alias bool
	acls  *[]ACL // memory for the lists, see newACLs; nil: each list is allocated
}

// NewReader returns a Reader that copies strings and buffers out of the frame.
func NewReader(frame []byte) Reader { return Reader{buf: frame} }

// AliasReader returns a Reader that doesn't copy: its strings and buffers alias frame and
// are valid only until frame is overwritten.
func AliasReader(frame []byte) Reader { return Reader{buf: frame, alias: true} }

// Err returns the first error, or nil.
func (r *Reader) Err() error { return r.err }

// Len returns the number of bytes not yet read.
func (r *Reader) Len() int { return len(r.buf) - r.off }

// Rest returns the bytes not yet read, aliasing the frame.
func (r *Reader) Rest() []byte { return r.buf[r.off:] }

// Fail sets the sticky error to err unless r already has one.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
		r.off = len(r.buf)
	}
}

func (r *Reader) take(n int) []byte {
	if r.err != nil {
		return nil
	}
	if n > r.Len() {
		r.Fail(ErrShort)
		return nil
	}
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// LeadingPath returns the string at the start of body, aliasing it: the path, in a
// request for one znode. It returns "" if there is no string.
func LeadingPath(body []byte) string {
	if len(body) < LengthSize {
		return ""
	}
	n, rest := binary.BigEndian.Uint32(body), body[LengthSize:]
	if n == 0 || uint64(n) > uint64(len(rest)) {
		return ""
	}
	return unsafe.String(&rest[0], n)
}

// PrefixPath puts prefix before the path at the start of the body b[body:]. The root has
// an empty name, so its new path is prefix alone.
func PrefixPath(b []byte, body int, prefix string) []byte {
	at := body + LengthSize
	rest := b[at:]
	n := binary.BigEndian.Uint32(b[body:])
	if string(rest[:n]) == "/" {
		n, rest = 0, rest[1:]
	}
	end := at + len(prefix) + len(rest)
	b = slices.Grow(b, len(prefix))[:end]
	copy(b[at+len(prefix):], rest)
	copy(b[at:], prefix)
	binary.BigEndian.PutUint32(b[body:], n+uint32(len(prefix)))
	return b
}

// Bool reads one byte; any nonzero value is true.
func (r *Reader) Bool() bool {
	return r.Byte() != 0
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	b := r.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// Int reads a 32-bit integer.
func (r *Reader) Int() int32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

// Long reads a 64-bit integer.
func (r *Reader) Long() int64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// length reads the length of a string or buffer; we report null as −1.
func (r *Reader) length(what string) int {
	n := int(r.Int())
	if r.err != nil || n == -1 {
		return -1
	}
	if n < 0 {
		r.Fail(fmt.Errorf("proto: %s of negative length %d", what, n))
		return -1
	}
	if n > r.Len() {
		r.Fail(fmt.Errorf("proto: %s of length %d with %d bytes left: %w", what, n, r.Len(), ErrShort))
		return -1
	}
	return n
}

// Buffer reads a byte buffer; null is nil, empty is not.
func (r *Reader) Buffer() []byte {
	n := r.length("buffer")
	if n < 0 {
		return nil
	}
	b := r.take(n)
	switch {
	case n == 0:
		return []byte{}
	case r.alias:
		return b
	}
	return append(make([]byte, 0, n), b...)
}

// String reads a string. Null becomes [NullString], and invalid UTF-8 becomes U+FFFD, as
// in Java.
func (r *Reader) String() string {
	n := r.length("string")
	if n < 0 {
		if r.err != nil {
			return ""
		}
		return NullString
	}
	b := r.take(n)
	if !utf8.Valid(b) {
		return JavaString(b)
	}
	if r.alias && n > 0 {
		return unsafe.String(&b[0], n)
	}
	return string(b)
}

// Count reads the length of a vector. Each element has at least min bytes. Null is −1;
// other negative counts are empty vectors, as in Java.
func (r *Reader) Count(min int) int {
	n := int(r.Int())
	switch {
	case r.err != nil || n == -1:
		return -1
	case n < 0:
		return 0
	case n*min > r.Len():
		r.Fail(fmt.Errorf("proto: vector of %d elements with %d bytes left: %w", n, r.Len(), ErrShort))
		return -1
	}
	return n
}

// Strings reads a vector of strings; null is nil, empty is not.
func (r *Reader) Strings() []string {
	n := r.Count(4)
	if n < 0 {
		return nil
	}
	v := make([]string, n)
	for i := range v {
		v[i] = r.String()
	}
	return v
}

// AppendBool appends a boolean as one byte.
func AppendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}

// AppendInt appends a 32-bit integer.
func AppendInt(b []byte, v int32) []byte { return binary.BigEndian.AppendUint32(b, uint32(v)) }

// AppendLong appends a 64-bit integer.
func AppendLong(b []byte, v int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(v)) }

// AppendBuffer appends a byte buffer; nil is null.
func AppendBuffer(b, v []byte) []byte {
	if v == nil {
		return AppendInt(b, -1)
	}
	return append(AppendInt(b, int32(len(v))), v...)
}

// AppendString appends a string; [NullString] is null.
func AppendString(b []byte, v string) []byte {
	if v == NullString {
		return AppendInt(b, -1)
	}
	return append(AppendInt(b, int32(len(v))), v...)
}

// AppendStrings appends a vector of strings; nil is null.
func AppendStrings(b []byte, v []string) []byte {
	if v == nil {
		return AppendInt(b, -1)
	}
	b = AppendInt(b, int32(len(v)))
	for _, s := range v {
		b = AppendString(b, s)
	}
	return b
}
