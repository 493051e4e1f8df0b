package raftlog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// sectorSize is the unit that a disk writes as a whole or not at all.
const sectorSize = 512

// openEnd represents the end of the last segment, which isn't known before the scan.
const openEnd = math.MaxUint64

// scan is the result of verifying a segment from its start.
type scan struct {
	id    segmentID
	until uint64 // first index of the next segment, openEnd for the last segment

	limit int64
	spans []span
	end   int64 // offset after the last whole batch
	torn  bool  // an unacknowledged append follows
}

// scanSegment verifies every batch of a segment with content b. A batch that isn't whole
// is one of two things:
//
//   - the rest of an append that a machine stop interrupted: cut off. It is at the end of
//     the last segment, and some of its sectors are missing, i.e. zero;
//   - damage: an error.
//
// In any other segment, we ignore the bytes after its entries, because they were removed
// from the end of the log.
func scanSegment(b []byte, id segmentID, until uint64) (*scan, error) {
	limit, err := decodeSegmentHeader(b, id)
	if err != nil {
		return nil, err
	}
	if least := initialSize(limit); int64(len(b)) < least {
		return nil, fmt.Errorf("the file was cut: it has %d bytes, and had at least %d from the start", len(b), least)
	}
	s := &scan{id: id, until: until, limit: limit, end: segHeaderLen}
	for whole := true; whole && s.next() < until; {
		if whole, err = s.batch(b[s.end:]); err != nil {
			return nil, fmt.Errorf("log index %d at byte %d: %w", s.next(), s.end, err)
		}
	}
	if until == openEnd {
		return s, nil
	}
	if s.next() < until {
		return nil, fmt.Errorf("log index %d is missing, the segment should reach %d", s.next(), until-1)
	}
	s.spans = s.spans[:until-id.base]
	return s, nil
}

// next returns the index that the next entry would have.
func (s *scan) next() uint64 { return s.id.base + uint64(len(s.spans)) }

// batch verifies the batch at the start of b. It returns false at the end of the
// acknowledged batches.
func (s *scan) batch(b []byte) (whole bool, err error) {
	h, ok := getBatchHeader(b, s.id.salt)
	if !ok {
		return false, s.rest(b, batchHeaderLen)
	}
	if h.first != s.next() {
		return false, fmt.Errorf("a batch from index %d follows", h.first)
	}
	stop := batchHeaderLen + h.body
	if h.body > uint64(len(b)) || stop > uint64(len(b)) || crc32.Checksum(b[batchHeaderLen:stop], castagnoli) != h.bodySum {
		return false, s.rest(b, stop)
	}
	s.spans, err = batchSpans(s.spans, b[:stop], s.end)
	s.end += int64(stop)
	return true, err
}

// rest classifies the bytes after the last whole batch: nothing, a partly written batch,
// or damage. The next batch, or its header if that isn't readable, extends to stop.
func (s *scan) rest(b []byte, stop uint64) error {
	if allZero(b) {
		return nil
	}
	if s.until != openEnd {
		return errBadChecksum
	}
	for i := batchAlign; i+batchHeaderLen <= len(b); i += batchAlign {
		if h, ok := getBatchHeader(b[i:], s.id.salt); ok && h.first > s.next() {
			return fmt.Errorf("%w: entries from index %d follow", errBadChecksum, h.first)
		}
	}
	if stop <= uint64(len(b)) && !sectorMissing(b[:stop], s.end) {
		return fmt.Errorf("%w, although no part of it is missing", errBadChecksum)
	}
	s.torn = true
	return nil
}

// sectorMissing reports whether b contains a sector, or a part of one, that is all zero,
// as if a write hadn't reached the disk. b starts at byte off of the file.
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

func allZero(b []byte) bool { return len(bytes.TrimLeft(b, "\x00")) == 0 }

var errSegmentMissing = errors.New("segment file is missing")
