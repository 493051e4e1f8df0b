package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
)

// record holds all small durable state: the term, the vote, and how far the log reached
// when that was last certain. It is one value under one key, so it always changes as a
// whole, and a damaged key can't be mistaken for a value that was never set.
type record struct {
	// floor is an index that the log has certainly reached. A log that ends before it is
	// damaged, however clean its end looks. The floor is written when the store is closed
	// and lowered before entries are removed from the end.
	floor uint64
	// snapshot is the index of the snapshot that was written last. If the log doesn't
	// reach that far, only this index shows that the snapshot is missing.
	snapshot uint64
	values   map[string][]byte
}

const recordVersion = 2

var errBadRecord = errors.New("the record with term and vote is damaged")

func (r *record) clone() record {
	return record{floor: r.floor, snapshot: r.snapshot, values: maps.Clone(r.values)}
}

// reached returns an error if a log that ends at last is shorter than it was. where is
// the path of its last file.
func (r *record) reached(where string, last uint64) error {
	if last >= r.floor {
		return nil
	}
	return fmt.Errorf("%s: damaged: the log ends at index %d, but it had reached log index %d", where, last, r.floor)
}

// covered returns an error if snapshots and log, whose last entry is at index last, lack
// entries that only a snapshot can hold.
func (r *record) covered(snapDir string, last uint64) error {
	if last >= r.snapshot {
		return nil
	}
	return fmt.Errorf("%s: damaged: the snapshot that ends at log index %d is missing, and what is there ends at log index %d", snapDir, r.snapshot, last)
}

// encode writes version, floor, snapshot, count, then keys and values with their lengths,
// then CRC32C.
func (r *record) encode() []byte {
	b := []byte{recordVersion}
	b = binary.BigEndian.AppendUint64(b, r.floor)
	b = binary.BigEndian.AppendUint64(b, r.snapshot)
	b = binary.AppendUvarint(b, uint64(len(r.values)))
	for _, k := range slices.Sorted(maps.Keys(r.values)) {
		b = binary.AppendUvarint(b, uint64(len(k)))
		b = append(b, k...)
		b = binary.AppendUvarint(b, uint64(len(r.values[k])))
		b = append(b, r.values[k]...)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// decodeRecord decodes a record; nil, as in a new store, is an empty one.
func decodeRecord(b []byte) (record, error) {
	r := record{values: map[string][]byte{}}
	if b == nil {
		return r, nil
	}
	if len(b) < 1+8+8+1+4 || b[0] != recordVersion {
		return r, errBadRecord
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if crc32.Checksum(body, castagnoli) != sum {
		return r, errBadRecord
	}
	r.floor = binary.BigEndian.Uint64(body[1:])
	r.snapshot = binary.BigEndian.Uint64(body[9:])
	body = body[17:]
	count, body, ok := cutUvarint(body)
	for ; ok && count > 0; count-- {
		var k, v []byte
		if k, body, ok = cutBytes(body); !ok {
			break
		}
		if v, body, ok = cutBytes(body); ok {
			r.values[string(k)] = slices.Clone(v)
		}
	}
	if !ok || len(body) != 0 {
		return r, errBadRecord
	}
	return r, nil
}

func cutUvarint(b []byte) (uint64, []byte, bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, false
	}
	return v, b[n:], true
}

func cutBytes(b []byte) (v, rest []byte, ok bool) {
	n, b, ok := cutUvarint(b)
	if !ok || n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:n], b[n:], true
}
