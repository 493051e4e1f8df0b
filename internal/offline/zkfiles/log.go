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
)

// A log file is a header and records: the Adler-32 of the payload as a long, the
// length of the payload, the payload, and a byte that says that all of it was
// written. ZooKeeper makes a file larger in steps, with zeros.
const (
	logMagic      = 0x5a4b4c47 // "ZKLG"
	logHeaderSize = 4 + 4 + 8
	recordHeader  = 8 + 4
	recordEnd     = 'B'
	minPayload    = 8 + 4 + 8 + 8 + 4 // a transaction's header
)

// Tail says how a log file ends where it does not end with a whole record and
// nothing or zeros behind it. ZooKeeper takes each of these for the end of the
// file: what a crash leaves of a record was never acknowledged.
type Tail struct {
	File   string
	Offset int64  // where the last whole record ends
	Cause  string // what is wrong there
	Bytes  int64  // behind it, without the zeros at the end of the file
}

// String describes the tail.
func (t *Tail) String() string {
	return fmt.Sprintf("%s: at offset %d: %s; the %d bytes behind it are not used, as ZooKeeper does not use them", t.File, t.Offset, t.Cause, t.Bytes)
}

// Log is a log file while it is read.
type Log struct {
	name string
	most int // bytes of a record
	r    *bufio.Reader
	off  int64
	tail *Tail
}

// recordOverhead is what a record may have besides one field of the largest length.
const recordOverhead = 64 << 10

// ReadLog returns a log file of ZooKeeper to be walked over once by All. name is
// for messages. A record is a request, so l.MaxField bounds it, too.
func ReadLog(name string, r io.Reader, l Limits) *Log {
	return &Log{name: name, most: l.maxField() + recordOverhead, r: bufio.NewReaderSize(r, 256<<10)}
}

// Tail returns how the file ended, nil for a clean end. It is known when All has
// come to the end.
func (l *Log) Tail() *Tail { return l.tail }

// All yields the transactions, the memory of each its own. An error, which names
// file, offset and cause, is the last thing it yields. A record that was written
// in part, at the end of the file, is none; see Tail. But where good records
// stand behind a bad one, something was damaged later, and that is an error.
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
				tx, err = decodeTxn(payload)
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

// fail names the place of err.
func (l *Log) fail(at int64, err error) error {
	return fmt.Errorf("%s: at offset %d: %w", l.name, at, err)
}

// header reads the start of the file. A file of nothing is one that was being
// made when the server ended.
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
		return false, l.fail(0, fmt.Errorf("no transaction log of ZooKeeper: it begins with %#08x instead of %#08x", magic, uint32(logMagic)))
	case version != fileVersion:
		return false, l.fail(4, fmt.Errorf("a log of format %d, only %d is known", version, fileVersion))
	}
	l.off = logHeaderSize
	return false, nil
}

// record reads the payload of the next record; nil at the end.
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
	rest, err := readUpTo(l.r, min(int(size), l.most)+1)
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
		return nil, fmt.Errorf("the checksum of a record of %d bytes is %#x, what is there has %#x", size, want, have)
	}
	l.off += recordHeader + int64(size) + 1
	return payload, nil
}

// readUpTo reads n bytes, or fewer at the end of r. It believes n as far as
// bytes come.
func readUpTo(r io.Reader, n int) ([]byte, error) {
	b := make([]byte, 0, min(n, readStep))
	for len(b) < n {
		have := len(b)
		step := min(n-have, max(readStep, have))
		if cap(b) < have+step {
			b = append(make([]byte, 0, have+step), b...)
		}
		b = b[:have+step]
		k, err := io.ReadFull(r, b[have:])
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return b[:have+k], nil
		case err != nil:
			return nil, err
		}
	}
	return b, nil
}

// ends decides what it means that no whole record stands at l.off. Zeros to the
// end of the file are its end. Anything else is the tail of a write that was cut
// short, unless there is a whole record behind it.
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
		return fmt.Errorf("%s, but behind it, at offset %d, stands a whole record: the file is damaged here; ZooKeeper would lose what is behind. If the place is the end of what was acknowledged, make a copy and cut it: truncate -s %d", cause, l.off+at, l.off)
	case used > 0:
		l.tail = &Tail{File: l.name, Offset: l.off, Cause: cause, Bytes: used}
	}
	return nil
}

// maxRecord bounds what is searched behind a tear: a record is a request, and
// those have a megabyte unless somebody has raised the limit.
const maxRecord = 16 << 20

// lookBehind reads to the end of the file. It returns how many bytes there are
// up to the last that is not zero, and where in them a whole record begins, −1
// when none does. head are the bytes that have been read already.
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

// window is a part of a file that is looked through.
type window struct {
	buf   []byte
	base  int64 // where it begins
	ended bool  // the file ends with it
}

// grow reads on. Zeros before everything are let go of: a file may have 64 MiB of
// them. Those that could be the start of a record stay.
func (w *window) grow(r io.Reader) error {
	have := len(w.buf)
	w.buf = slices.Grow(w.buf, readStep)[:have+readStep]
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

// allZero reports whether b has nothing but zeros: each byte is compared with the
// next one, which is done many at a time.
func allZero(b []byte) bool {
	return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1])
}

// isRecord reports whether b begins with a whole record.
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
