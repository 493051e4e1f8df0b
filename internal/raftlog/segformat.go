package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/vfs"
)

// A segment file is a header and batches. One append is one batch, written and fsynced as
// a whole. The rest of the file is zeros.
//
//	header  "zkgo\x00seg" 8 | base index 8 | salt 8 | size limit 8 | CRC32C 4 | zeros up to 64
//	batch   magic 4 | entries 4 | first index 8 | body length 8 | salt 8 | CRC32C of body 4 | CRC32C of these 36 bytes 4
//	body    length of each entry, 4 each | the entries | zeros up to a multiple of 8
//	entry   index 8 | term 8 | appended at, Unix ns, 0 for none 8 | type 1 | extension length 1 | extensions | data
//
// The salt is unique to the file, so that we never mistake bytes of another log, which a
// client may have stored in a znode, for a batch of this one.

const (
	segMagic       = "zkgo\x00seg"
	segHeaderLen   = 64
	batchMagic     = 0x7a6b6231
	batchHeaderLen = 40
	batchAlign     = 8
	entryHeadLen   = 8 + 8 + 8 + 1 + 1
)

// segmentID identifies a segment: the index of its first entry, and its salt.
type segmentID struct{ base, salt uint64 }

func newSegmentID(base uint64) segmentID { return segmentID{base: base, salt: rand.Uint64() | 1} }

func (id segmentID) name() string { return fmt.Sprintf(segPattern, id.base, id.salt) }

// MarshalText implements encoding.TextMarshaler.
func (id segmentID) MarshalText() ([]byte, error) { return []byte(id.name()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *segmentID) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), segPattern, &id.base, &id.salt)
	return err
}

func encodeSegmentHeader(id segmentID, limit int64) []byte {
	b := make([]byte, segHeaderLen)
	copy(b, segMagic)
	binary.LittleEndian.PutUint64(b[8:], id.base)
	binary.LittleEndian.PutUint64(b[16:], id.salt)
	binary.LittleEndian.PutUint64(b[24:], uint64(limit))
	binary.LittleEndian.PutUint32(b[32:], crc32.Checksum(b[:32], castagnoli))
	return b
}

func decodeSegmentHeader(b []byte, id segmentID) (limit int64, err error) {
	if len(b) < segHeaderLen || string(b[:8]) != segMagic || crc32.Checksum(b[:32], castagnoli) != binary.LittleEndian.Uint32(b[32:]) {
		return 0, errors.New("segment header is damaged")
	}
	got := segmentID{base: binary.LittleEndian.Uint64(b[8:]), salt: binary.LittleEndian.Uint64(b[16:])}
	if got != id {
		return 0, fmt.Errorf("this is segment %s, expected %s", got.name(), id.name())
	}
	return int64(binary.LittleEndian.Uint64(b[24:])), nil
}

// initialSize is the size of a segment before its first batch.
func initialSize(limit int64) int64 {
	return vfs.BlockEnd(min(zeroAheadMin, max(limit, segHeaderLen)))
}

// batchHeader precedes the entries of one append.
type batchHeader struct {
	count   uint32
	first   uint64
	body    uint64
	bodySum uint32
}

func (h batchHeader) put(b []byte, salt uint64) {
	binary.LittleEndian.PutUint32(b[0:], batchMagic)
	binary.LittleEndian.PutUint32(b[4:], h.count)
	binary.LittleEndian.PutUint64(b[8:], h.first)
	binary.LittleEndian.PutUint64(b[16:], h.body)
	binary.LittleEndian.PutUint64(b[24:], salt)
	binary.LittleEndian.PutUint32(b[32:], h.bodySum)
	binary.LittleEndian.PutUint32(b[36:], crc32.Checksum(b[:36], castagnoli))
}

// getBatchHeader returns the header at the start of b, if there is one.
func getBatchHeader(b []byte, salt uint64) (h batchHeader, ok bool) {
	if len(b) < batchHeaderLen || binary.LittleEndian.Uint32(b) != batchMagic || binary.LittleEndian.Uint64(b[24:]) != salt ||
		crc32.Checksum(b[:36], castagnoli) != binary.LittleEndian.Uint32(b[36:]) {
		return h, false
	}
	h = batchHeader{
		count:   binary.LittleEndian.Uint32(b[4:]),
		first:   binary.LittleEndian.Uint64(b[8:]),
		body:    binary.LittleEndian.Uint64(b[16:]),
		bodySum: binary.LittleEndian.Uint32(b[32:]),
	}
	return h, h.count > 0 && h.body >= 4*uint64(h.count)
}

func entryLen(l *raft.Log) int { return entryHeadLen + len(l.Extensions) + len(l.Data) }

// batchLen returns the length of the batch of these entries.
func batchLen(logs []*raft.Log) int {
	n := batchHeaderLen
	for _, l := range logs {
		n += 4 + entryLen(l)
	}
	return (n + batchAlign - 1) / batchAlign * batchAlign
}

// appendBatch encodes entries as one batch.
func appendBatch(b []byte, salt uint64, logs []*raft.Log) []byte {
	start := len(b)
	stop := start + batchLen(logs)
	var head [batchHeaderLen]byte
	b = append(b, head[:]...)
	for _, l := range logs {
		b = binary.LittleEndian.AppendUint32(b, uint32(entryLen(l)))
	}
	for _, l := range logs {
		b = appendEntry(b, l)
	}
	for len(b) < stop {
		b = append(b, 0)
	}
	body := b[start+batchHeaderLen:]
	batchHeader{
		count: uint32(len(logs)), first: logs[0].Index, body: uint64(len(body)), bodySum: crc32.Checksum(body, castagnoli),
	}.put(b[start:], salt)
	return b
}

func appendEntry(b []byte, l *raft.Log) []byte {
	var at uint64
	if !l.AppendedAt.IsZero() {
		at = uint64(l.AppendedAt.UnixNano())
	}
	b = binary.LittleEndian.AppendUint64(b, l.Index)
	b = binary.LittleEndian.AppendUint64(b, l.Term)
	b = binary.LittleEndian.AppendUint64(b, at)
	b = append(b, byte(l.Type), byte(len(l.Extensions)))
	return append(append(b, l.Extensions...), l.Data...)
}

// decodeEntry decodes an entry that shares the bytes of b.
func decodeEntry(b []byte, l *raft.Log) error {
	if len(b) < entryHeadLen || len(b) < entryHeadLen+int(b[25]) {
		return io.ErrUnexpectedEOF
	}
	ext := entryHeadLen + int(b[25])
	*l = raft.Log{
		Index:      binary.LittleEndian.Uint64(b[0:]),
		Term:       binary.LittleEndian.Uint64(b[8:]),
		Type:       raft.LogType(b[24]),
		Extensions: b[entryHeadLen:ext:ext],
	}
	if len(b) > ext {
		l.Data = b[ext:]
	}
	if ns := binary.LittleEndian.Uint64(b[16:]); ns != 0 {
		l.AppendedAt = time.Unix(0, int64(ns))
	}
	return nil
}

// span is the position of an entry in its file.
type span struct{ off, len uint32 }

// batchSpans appends the positions of a batch's entries. The batch starts at off.
func batchSpans(spans []span, batch []byte, off int64) ([]span, error) {
	body := batch[batchHeaderLen:]
	count := uint64(binary.LittleEndian.Uint32(batch[4:]))
	at := 4 * count
	for i := range count {
		n := binary.LittleEndian.Uint32(body[4*i:])
		if at+uint64(n) > uint64(len(body)) {
			return spans, errors.New("entries are longer than their batch")
		}
		spans = append(spans, span{off: uint32(off) + batchHeaderLen + uint32(at), len: n})
		at += uint64(n)
	}
	return spans, nil
}
