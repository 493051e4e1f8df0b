package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/hashicorp/raft-wal/types"
)

// sectorSize is what a disk writes whole or not at all.
const sectorSize = 512

// scan is what reading a segment from its beginning finds.
type scan struct {
	salt  uint64
	spans []span
	end   int64 // behind the last whole batch
	torn  bool  // something follows that was never acknowledged
	size  int64 // of the file
}

// scanSegment reads a segment and verifies every batch. A batch that is not
// whole is one of three things:
//
//   - anything, behind the entries a sealed segment is known to hold: ignored;
//   - the remains of an append the machine stopped in: cut off. Sectors of it
//     are missing, that is zero, and no batch follows, because the next one is
//     written only after this one was fsynced;
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

// next is the index of the entry that would follow.
func (s *scan) next(info types.SegmentInfo) uint64 { return info.BaseIndex + uint64(len(s.spans)) }

// batch reads one batch. It returns false at the end of what was acknowledged.
func (s *scan) batch(f io.ReaderAt, info types.SegmentInfo, body []byte) (bool, []byte, error) {
	head := make([]byte, batchHeaderLen)
	n, err := f.ReadAt(head, s.end)
	if err != nil && err != io.EOF {
		return false, body, err
	}
	h, ok := getBatchHeader(head[:n], s.salt)
	if !ok {
		return false, body, s.tail(f, info, s.end+batchHeaderLen)
	}
	if h.first != s.next(info) {
		return false, body, fmt.Errorf("a batch from index %d follows", h.first)
	}
	stop := s.end + batchHeaderLen + int64(h.body)
	if h.body > uint64(s.size) || stop > s.size {
		return false, body, s.tail(f, info, stop)
	}
	if uint64(cap(body)) < h.body {
		body = make([]byte, h.body)
	}
	body = body[:h.body]
	if _, err := f.ReadAt(body, s.end+batchHeaderLen); err != nil {
		return false, body, err
	}
	if crc32.Checksum(body, castagnoli) != h.bodySum {
		return false, body, s.tail(f, info, stop)
	}
	s.spans, err = batchSpans(s.spans, h, body, s.end+batchHeaderLen)
	s.end = stop
	return true, body, err
}

// tail judges what follows the last whole batch: nothing, a batch the machine
// stopped in (as far as its header tells up to stop), or damage.
func (s *scan) tail(f io.ReaderAt, info types.SegmentInfo, stop int64) error {
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
	for i := batchAlign; i+batchHeaderLen <= len(rest); i += batchAlign {
		if h, ok := getBatchHeader(rest[i:], s.salt); ok && h.first > s.next(info) {
			return fmt.Errorf("%w: entries from index %d follow", errBadChecksum, h.first)
		}
	}
	if stop <= s.size && !sectorMissing(rest[:stop-s.end], s.end) {
		return fmt.Errorf("%w, although no part of it is missing", errBadChecksum)
	}
	return nil
}

// sectorMissing says whether a sector, or the part of one that b covers, is
// zero, as where a write did not arrive. b begins at byte off of the file.
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
