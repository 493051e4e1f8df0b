package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft-wal/types"

	"github.com/zkgo/zkgo/internal/vfs"
)

// sectorSize is the unit that a disk writes as a whole or not at all.
const sectorSize = 512

// scan is the result of reading a segment from its start.
type scan struct {
	salt  uint64
	spans []span
	end   int64 // offset after the last whole batch
	torn  bool  // an unacknowledged append follows
	size  int64 // size of the file
}

// scanSegment reads a segment and verifies every batch. A batch that isn't whole is one
// of three things:
//
//   - anything, after the last known entry of a sealed segment: ignored;
//   - the rest of an append that a machine stop interrupted: cut off, together with
//     everything that was being written at the same time. Some of its sectors are
//     missing, i.e. zero, and no batch follows that was written after this one was
//     known to be on disk;
//   - damage: an error.
func scanSegment(f io.ReaderAt, size int64, info types.SegmentInfo) (*scan, error) {
	s := &scan{size: size, end: segHeaderLen}
	head := make([]byte, segHeaderLen)
	if _, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	var err error
	if s.salt, err = decodeSegmentHeader(head, info); err != nil {
		return nil, err
	}
	if least := segmentSize(info); size < least {
		return nil, fmt.Errorf("the file was cut: it has %d bytes, and had at least %d from the start", size, least)
	}
	sealed := !info.SealTime.IsZero()
	var body []byte
	for !sealed || s.next(info) <= info.MaxIndex {
		var whole bool
		whole, body, err = s.batch(f, info, body)
		if err != nil {
			return nil, fmt.Errorf("log index %d at byte %d: %w", s.next(info), s.end, err)
		}
		if !whole {
			break
		}
	}
	if sealed && s.next(info) <= info.MaxIndex {
		return nil, fmt.Errorf("log index %d is missing, the segment should reach %d", s.next(info), info.MaxIndex)
	}
	if sealed {
		s.torn = false
		s.spans = s.spans[:info.MaxIndex-info.BaseIndex+1]
	}
	return s, nil
}

// next returns the index that the next entry would have.
func (s *scan) next(info types.SegmentInfo) uint64 { return info.BaseIndex + uint64(len(s.spans)) }

// header reads the header of the next batch, and returns its offset: the end of the
// previous batch, or the next block boundary.
func (s *scan) header(f io.ReaderAt) (at int64, h batchHeader, ok bool, err error) {
	head := make([]byte, besideHeaderLen)
	for _, at = range []int64{s.end, vfs.BlockEnd(s.end)} {
		n, err := f.ReadAt(head, at)
		if err != nil && err != io.EOF {
			return at, h, false, err
		}
		if h, ok = getBatchHeader(head[:n], s.salt); ok {
			return at, h, true, nil
		}
	}
	return s.end, h, false, nil
}

// batch reads one batch. It returns false at the end of the acknowledged batches.
func (s *scan) batch(f io.ReaderAt, info types.SegmentInfo, body []byte) (bool, []byte, error) {
	at, h, ok, err := s.header(f)
	if err != nil {
		return false, body, err
	}
	if ok && at != s.end && (h.first != s.next(info) || !zeroBetween(f, s.end, at)) {
		ok = false // it isn't the next batch: one between them is missing or damaged
	}
	if !ok {
		return false, body, s.rest(f, info, s.end, 0)
	}
	if h.first != s.next(info) {
		return false, body, fmt.Errorf("a batch from index %d follows", h.first)
	}
	from := at + int64(h.size)
	stop := from + int64(h.body)
	if h.body > uint64(s.size) || stop > s.size {
		return false, body, s.rest(f, info, at, stop)
	}
	if uint64(cap(body)) < h.body {
		body = make([]byte, h.body)
	}
	body = body[:h.body]
	if _, err := f.ReadAt(body, from); err != nil {
		return false, body, err
	}
	if crc32.Checksum(body, castagnoli) != h.bodySum {
		return false, body, s.rest(f, info, at, stop)
	}
	s.spans, err = batchSpans(s.spans, h, body, from)
	s.end = stop
	return true, body, err
}

// zeroBetween reports whether a part of the file, less than a block long, is zero.
func zeroBetween(f io.ReaderAt, from, to int64) bool {
	b := make([]byte, to-from)
	_, err := f.ReadAt(b, from)
	return err == nil && allZero(b)
}

// rest judges the bytes after the last whole batch: nothing, a batch whose write was
// interrupted, or damage. The header of that batch says that it extends from at to stop;
// stop is 0 if the header isn't readable.
func (s *scan) rest(f io.ReaderAt, info types.SegmentInfo, at, stop int64) error {
	if s.end >= s.size {
		return nil
	}
	rest := make([]byte, s.size-s.end)
	if _, err := f.ReadAt(rest, s.end); err != nil && err != io.EOF {
		return err
	}
	if allZero(rest) {
		return nil
	}
	if !info.SealTime.IsZero() {
		return errBadChecksum
	}
	s.torn = true
	next := s.next(info)
	for i := batchAlign; i+batchHeaderLen <= len(rest); i += batchAlign {
		if h, ok := getBatchHeader(rest[i:], s.salt); ok && h.first > next && h.open > next {
			return fmt.Errorf("%w: entries from index %d follow", errBadChecksum, h.first)
		}
	}
	if stop == 0 {
		at, stop = s.where(rest)
	}
	if stop <= s.size && !sectorMissing(rest[at-s.end:stop-s.end], at) {
		return fmt.Errorf("%w, although no part of it is missing", errBadChecksum)
	}
	return nil
}

// where returns the position of the unreadable header after the last whole batch. If the
// header starts at a block boundary after zeros, its remains identify it.
func (s *scan) where(rest []byte) (from, to int64) {
	at := s.end
	if gap := vfs.BlockEnd(s.end) - s.end; gap < int64(len(rest)) && allZero(rest[:gap]) {
		if _, ok := getBatchHeader(rest[gap:], s.salt); !ok && resemblesBatch(rest[gap:], s.salt) {
			at += gap
		}
	}
	return at, at + besideHeaderLen
}

// sectorMissing reports whether a sector, or the part of it that b covers, is zero, as if
// a write hadn't reached the disk. b starts at byte off of the file.
func sectorMissing(b []byte, off int64) bool {
	for len(b) > 0 {
		n := min(int64(len(b)), sectorSize-off%sectorSize)
		if allZero(b[:n]) {
			return true
		}
		b, off = b[n:], off+n
	}
	return false
}

func allZero(b []byte) bool {
	return len(bytes.TrimLeft(b, "\x00")) == 0
}

var errSegmentMissing = errors.New("segment file is missing")
