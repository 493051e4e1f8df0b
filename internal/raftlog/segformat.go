package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"

	"github.com/hashicorp/raft-wal/types"
)

// A segment file is a header and batches. One append is one batch, written and fsynced as
// a whole. The rest of the file is zeros.
//
//	header  "zkgo\x00seg" 8 | id 8 | base index 8 | salt 8 | CRC32C 4 | zeros up to 64
//	batch   magic 4 | entries 4 | first index 8 | body length 8 | salt 8 | CRC32C of body 4 | CRC32C of these 36 bytes 4
//	beside  another magic, and the open index 8 before the checksums, which are of 44 bytes then
//	body    length of each entry, 4 each | the entries | zeros up to a multiple of 8
//
// A batch that was written concurrently with others has a header of the second kind
// (beside); only a standalone server writes these. The open index is the first entry that
// wasn't known to be on disk at that time. Such a batch starts at a block boundary, after
// zeros that follow the previous batch.
//
// The salt is unique to the file, so that bytes of another log that a client stored in a
// znode are never mistaken for a batch of this one.

const (
	segMagic        = "zkgo\x00seg"
	segHeaderLen    = 64
	batchMagic      = 0x7a6b6231
	batchHeaderLen  = 40
	besideMagic     = 0x7a6b6232
	besideHeaderLen = 48
	batchAlign      = 8
)

var errSegmentHeader = errors.New("segment header is damaged")

func newSalt() uint64 { return rand.Uint64() | 1 }

func encodeSegmentHeader(info types.SegmentInfo, salt uint64) []byte {
	b := make([]byte, segHeaderLen)
	copy(b, segMagic)
	binary.LittleEndian.PutUint64(b[8:], info.ID)
	binary.LittleEndian.PutUint64(b[16:], info.BaseIndex)
	binary.LittleEndian.PutUint64(b[24:], salt)
	binary.LittleEndian.PutUint32(b[32:], crc32.Checksum(b[:32], castagnoli))
	return b
}

func decodeSegmentHeader(b []byte, info types.SegmentInfo) (salt uint64, err error) {
	if string(b[:8]) != segMagic || crc32.Checksum(b[:32], castagnoli) != binary.LittleEndian.Uint32(b[32:]) {
		return 0, errSegmentHeader
	}
	id, base := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	if id != info.ID || base != info.BaseIndex {
		return 0, fmt.Errorf("this is segment %x from index %d, expected was %x from %d", id, base, info.ID, info.BaseIndex)
	}
	return binary.LittleEndian.Uint64(b[24:]), nil
}

// batchHeader precedes the entries of one append.
type batchHeader struct {
	size    int // of the header itself
	count   uint32
	first   uint64
	open    uint64 // all entries before this index were on disk
	body    uint64
	bodySum uint32
}

// headerLen returns the length of a batch's header.
func headerLen(first, open uint64) int {
	if open < first {
		return besideHeaderLen
	}
	return batchHeaderLen
}

func (h batchHeader) put(b []byte, salt uint64) {
	b = b[:h.size]
	binary.LittleEndian.PutUint32(b[0:], batchMagic)
	binary.LittleEndian.PutUint32(b[4:], h.count)
	binary.LittleEndian.PutUint64(b[8:], h.first)
	binary.LittleEndian.PutUint64(b[16:], h.body)
	binary.LittleEndian.PutUint64(b[24:], salt)
	if h.size == besideHeaderLen {
		binary.LittleEndian.PutUint32(b[0:], besideMagic)
		binary.LittleEndian.PutUint64(b[32:], h.open)
	}
	binary.LittleEndian.PutUint32(b[h.size-8:], h.bodySum)
	binary.LittleEndian.PutUint32(b[h.size-4:], crc32.Checksum(b[:h.size-4], castagnoli))
}

// getBatchHeader returns the header at the start of b, if there is one.
func getBatchHeader(b []byte, salt uint64) (h batchHeader, ok bool) {
	if len(b) < batchHeaderLen {
		return batchHeader{}, false
	}
	switch binary.LittleEndian.Uint32(b) {
	case batchMagic:
		h.size = batchHeaderLen
	case besideMagic:
		h.size = besideHeaderLen
	}
	if h.size == 0 || len(b) < h.size || binary.LittleEndian.Uint64(b[24:]) != salt {
		return batchHeader{}, false
	}
	sums := b[h.size-8 : h.size] // checksum of the body, and of the header before it
	if crc32.Checksum(b[:h.size-4], castagnoli) != binary.LittleEndian.Uint32(sums[4:]) {
		return batchHeader{}, false
	}
	h.count = binary.LittleEndian.Uint32(b[4:])
	h.first = binary.LittleEndian.Uint64(b[8:])
	h.open = h.first
	h.body = binary.LittleEndian.Uint64(b[16:])
	h.bodySum = binary.LittleEndian.Uint32(sums)
	if h.size == besideHeaderLen {
		h.open = binary.LittleEndian.Uint64(b[32:])
	}
	return h, h.count > 0 && h.body >= 4*uint64(h.count)
}

// resemblesBatch reports whether b starts like a batch of this file, even if its header
// is damaged.
func resemblesBatch(b []byte, salt uint64) bool {
	if len(b) < batchHeaderLen {
		return false
	}
	magic := binary.LittleEndian.Uint32(b)
	return magic == batchMagic || magic == besideMagic || binary.LittleEndian.Uint64(b[24:]) == salt
}

// appendBatch encodes entries as one batch, with its open index.
func appendBatch(b []byte, salt, open uint64, entries []types.LogEntry) []byte {
	start, size := len(b), headerLen(entries[0].Index, open)
	b = append(b, make([]byte, size)...)
	for _, e := range entries {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.Data)))
	}
	for _, e := range entries {
		b = append(b, e.Data...)
	}
	for len(b)%batchAlign != 0 {
		b = append(b, 0)
	}
	body := b[start+size:]
	batchHeader{
		size:    size,
		count:   uint32(len(entries)),
		first:   entries[0].Index,
		open:    open,
		body:    uint64(len(body)),
		bodySum: crc32.Checksum(body, castagnoli),
	}.put(b[start:], salt)
	return b
}

// span is the position of an entry in its file.
type span struct{ off, len uint32 }

// batchSpans returns the positions of a batch's entries. The body starts at off.
func batchSpans(spans []span, h batchHeader, body []byte, off int64) ([]span, error) {
	at := uint64(4 * h.count)
	for i := range h.count {
		n := binary.LittleEndian.Uint32(body[4*i:])
		if at+uint64(n) > uint64(len(body)) {
			return spans, errors.New("entries are longer than their batch")
		}
		spans = append(spans, span{off: uint32(off) + uint32(at), len: n})
		at += uint64(n)
	}
	return spans, nil
}
