package zkfiles

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"iter"
	"slices"

	"github.com/zkgo/zkgo/internal/zab"
)

// A log file has a header and records. A record has the Adler-32 of the payload as a
// long, the payload's length, the payload, and a byte that marks it as complete.
// ZooKeeper extends a file in steps, with zeros.
const (
	logMagic      = 0x5a4b4c47 // "ZKLG"
	logHeaderSize = 4 + 4 + 8
	recordHeader  = 8 + 4
	recordEnd     = 'B'
	minPayload    = 8 + 4 + 8 + 8 + 4 // a transaction's header
)

// Tail describes the end of a log file that doesn't end with a complete record
// followed by nothing or by zeros. ZooKeeper treats each of these cases as the end of
// the file, because a record that is incomplete after a crash was never acknowledged.
type Tail struct {
	File   string
	Offset int64  // end of the last complete record
	Cause  string // the error at this offset
	Bytes  int64  // after Offset, without the zeros at the end of the file
}

// String describes the tail.
func (t *Tail) String() string {
	return fmt.Sprintf("%s: at offset %d: %s; the %d bytes after it are not used, as in ZooKeeper", t.File, t.Offset, t.Cause, t.Bytes)
}

// Log is a log file that is being read.
type Log struct {
	name string
	most int // maximum size of a record in bytes
	r    *bufio.Reader
	off  int64
	tail *Tail
}

// recordOverhead is the maximum size of a record apart from one field of maximum
// length.
const recordOverhead = 64 << 10

// ReadLog returns a ZooKeeper log file, which All iterates over once. name is used in
// messages. A record is a request, so l.MaxField limits it, too.
func ReadLog(name string, r io.Reader, l Limits) *Log {
	return &Log{name: name, most: l.maxField() + recordOverhead, r: bufio.NewReaderSize(r, 256<<10)}
}

// Tail returns how the file ended, nil for a clean end. It is valid after All has
// reached the end.
func (l *Log) Tail() *Tail { return l.tail }

// All yields the transactions; they share no memory. An error contains the file, the
// offset and the cause, and ends the iteration. An incomplete record at the end of
// the file isn't an error; see Tail. If valid records follow an invalid one, the file
// was damaged later, and that is an error.
func (l *Log) All() iter.Seq2[*Txn, error] {
	return func(yield func(*Txn, error) bool) {
		if empty, err := l.header(); err != nil || empty {
			if err != nil {
				yield(nil, err)
			}
			return
		}
		for {
			at := l.off
			payload, err := l.record()
			if payload == nil && err == nil {
				return
			}
			var tx *Txn
			if err == nil {
				tx, err = DecodeTxn(payload)
			}
			if err != nil {
				yield(nil, l.fail(at, err))
				return
			}
			tx.Offset = at
			if !yield(tx, nil) {
				return
			}
		}
	}
}

// fail adds the file and the offset to err.
func (l *Log) fail(at int64, err error) error {
	return fmt.Errorf("%s: at offset %d: %w", l.name, at, err)
}

// header reads the file header. An empty file is one that the server was creating
// when it ended.
func (l *Log) header() (empty bool, err error) {
	var h [logHeaderSize]byte
	n, err := io.ReadFull(l.r, h[:])
	switch {
	case errors.Is(err, io.EOF) && n == 0:
		l.tail = &Tail{File: l.name, Cause: "the file is empty"}
		return true, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return false, l.fail(int64(n), errors.New("the file ends within its header"))
	case err != nil:
		return false, l.fail(0, err)
	}
	magic, version := binary.BigEndian.Uint32(h[:]), binary.BigEndian.Uint32(h[4:])
	switch {
	case magic != logMagic:
		return false, l.fail(0, fmt.Errorf("not a transaction log of ZooKeeper: it begins with %#08x instead of %#08x", magic, uint32(logMagic)))
	case version != fileVersion:
		return false, l.fail(4, fmt.Errorf("a log of format %d, only %d is known", version, fileVersion))
	}
	l.off = logHeaderSize
	return false, nil
}

// record returns the payload of the next record, or nil at the end.
func (l *Log) record() ([]byte, error) {
	var h [recordHeader]byte
	switch n, err := io.ReadFull(l.r, h[:]); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, l.ends("the file ends within the header of a record", h[:n])
	case err != nil:
		return nil, err
	}
	want, size := int64(binary.BigEndian.Uint64(h[:])), int32(binary.BigEndian.Uint32(h[8:]))
	if size <= 0 {
		return nil, l.ends(fmt.Sprintf("a record of length %d", size), h[:])
	}
	rest, err := zab.ReadUpTo(l.r, min(int(size), l.most)+1)
	if err != nil {
		return nil, err
	}
	if len(rest) > l.most {
		return nil, fmt.Errorf("a record of %d bytes: %w", size, ErrTooLong)
	}
	if len(rest) <= int(size) {
		return nil, l.ends(fmt.Sprintf("the file ends within a record of %d bytes", size), h[:], rest)
	}
	if rest[size] != recordEnd {
		return nil, l.ends(fmt.Sprintf("a record of %d bytes without its end mark", size), h[:], rest)
	}
	payload := rest[:size]
	if have := int64(adler32.Checksum(payload)); have != want {
		return nil, fmt.Errorf("a record of %d bytes has the checksum %#x, but its content has %#x", size, want, have)
	}
	l.off += recordHeader + int64(size) + 1
	return payload, nil
}

// ends handles the absence of a complete record at l.off. Zeros up to the end of the file
// are its clean end. We treat anything else as an interrupted write, unless a complete
// record follows.
func (l *Log) ends(cause string, parts ...[]byte) error {
	var rest []byte
	for _, p := range parts {
		rest = append(rest, p...)
	}
	used, at, err := l.lookBehind(rest)
	switch {
	case err != nil:
		return err
	case at >= 0:
		return fmt.Errorf("%s, but after it, at offset %d, there is a whole record: the file is damaged here; ZooKeeper would lose everything after it. If no acknowledged write comes after this place, make a copy and cut it: truncate -s %d", cause, l.off+at, l.off)
	case used > 0:
		l.tail = &Tail{File: l.name, Offset: l.off, Cause: cause, Bytes: used}
	}
	return nil
}

// maxRecord limits the size of records that lookBehind searches for. A record is a
// request, and requests have at most a megabyte unless the limit was raised.
const maxRecord = 16 << 20

// lookBehind reads to the end of the file. It returns the number of bytes up to the
// last nonzero one, and the position of a complete record in them, or −1 if there is
// none. head contains the bytes read already.
func (l *Log) lookBehind(head []byte) (used, at int64, err error) {
	w := window{buf: head}
	for {
		for !w.ended && len(w.buf) < 2*maxRecord {
			if err := w.grow(l.r); err != nil {
				return 0, -1, err
			}
		}
		limit := len(w.buf)
		if !w.ended {
			limit -= maxRecord
		}
		for i := range limit {
			if w.buf[i] != 0 {
				used = w.base + int64(i) + 1
			}
			if w.base+int64(i) > 0 && isRecord(w.buf[i:]) {
				return used, w.base + int64(i), nil
			}
		}
		if w.ended {
			return used, -1, nil
		}
		w.drop(limit)
	}
}

// window is the part of a file that is being searched.
type window struct {
	buf   []byte
	base  int64 // offset of its first byte
	ended bool  // it contains the end of the file
}

// grow reads more bytes. We drop leading zeros, because a file may end with 64 MiB of zeros, but
// keep zeros that may be the start of a record.
func (w *window) grow(r io.Reader) error {
	have := len(w.buf)
	const step = 1 << 20
	w.buf = slices.Grow(w.buf, step)[:have+step]
	n, err := io.ReadFull(r, w.buf[have:])
	w.buf = w.buf[:have+n]
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		w.ended = true
	case err != nil:
		return err
	}
	if allZero(w.buf) {
		w.drop(max(len(w.buf)-recordHeader, 0))
	}
	return nil
}

func (w *window) drop(n int) {
	w.base += int64(n)
	w.buf = w.buf[:copy(w.buf, w.buf[n:])]
}

// allZero reports whether b contains only zeros. We compare each byte with the next one,
// because bytes.Equal does that for many bytes at a time.
func allZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}

// isRecord reports whether b begins with a complete record.
func isRecord(b []byte) bool {
	if len(b) < recordHeader+minPayload+1 || b[0]|b[1]|b[2]|b[3] != 0 || b[4]|b[5]|b[6]|b[7] == 0 {
		return false
	}
	size := int64(binary.BigEndian.Uint32(b[8:]))
	if size < minPayload || size > maxRecord-recordHeader-1 || recordHeader+size >= int64(len(b)) || b[recordHeader+size] != recordEnd {
		return false
	}
	payload := b[recordHeader : recordHeader+size]
	return int64(adler32.Checksum(payload)) == int64(binary.BigEndian.Uint64(b))
}
