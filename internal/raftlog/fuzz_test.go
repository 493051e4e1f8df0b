package raftlog

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/tests/kit/must"
)

// FuzzSegment scans segments of a log. The salt and the checksums of a whole segment
// would stop the fuzzer, so half of its inputs are bodies of a batch.
func FuzzSegment(f *testing.F) {
	id := segmentID{base: 7, salt: 99}
	const limit = 4096
	file := appendBatch(encodeSegmentHeader(id, limit), id.salt, []*raft.Log{{Index: 7, Data: []byte("a")}, {Index: 8, Data: []byte("bc")}})
	f.Add(file, uint32(2))
	f.Add(file[segHeaderLen+batchHeaderLen:], uint32(2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, count uint32) {
		forged := encodeSegmentHeader(id, limit)
		head := make([]byte, batchHeaderLen)
		batchHeader{count: count, first: 7, body: uint64(len(b)), bodySum: crc32.Checksum(b, castagnoli)}.put(head, id.salt)
		forged = append(append(forged, head...), b...)
		for _, file := range [][]byte{b, forged} {
			file = append(file, make([]byte, max(0, int(initialSize(limit))-len(file)))...)
			for _, until := range []uint64{8, 9, openEnd} {
				s, err := scanSegment(file, id, until)
				if err != nil {
					continue
				}
				for i, sp := range s.spans {
					if int64(sp.off)+int64(sp.len) > int64(len(file)) {
						t.Fatalf("entry %d at %d of %d bytes in a file of %d", i, sp.off, sp.len, len(file))
					}
				}
				if len(s.spans)*4 > len(file) {
					t.Fatalf("%d entries in a file of %d bytes", len(s.spans), len(file))
				}
			}
		}
	})
}

// FuzzLogEntry decodes entries of the log and encodes them to the same bytes again.
func FuzzLogEntry(f *testing.F) {
	f.Add(appendEntry(nil, &raft.Log{Index: 1, Term: 2, Type: raft.LogNoop, Extensions: []byte("sum"), Data: []byte("x"), AppendedAt: time.Unix(1, 2)}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var l raft.Log
		if decodeEntry(bytes.Clone(b), &l) != nil {
			return
		}
		if again := appendEntry(nil, &l); !bytes.Equal(again, b) || entryLen(&l) != len(b) {
			t.Fatalf("%x became %x", b, again)
		}
	})
}

// FuzzChecked decodes the files and the record that are JSON, with a correct checksum in
// half of the inputs. A decoded value should survive encoding and decoding.
func FuzzChecked(f *testing.F) {
	for _, v := range []any{
		metaState{First: 4, Segments: []segmentID{{base: 2, salt: 9}, {base: 7, salt: 11}}, Record: []byte("vote")},
		record{Floor: 5, Snapshot: 4, Values: map[string][]byte{"CurrentTerm": {1}, "LastVoteCand": []byte("3")}},
		snapMeta{SnapshotMeta: raft.SnapshotMeta{ID: "snap", Index: 5, Term: 2, Version: 1, Size: 9}, StateSum: 7},
	} {
		b := must.Get(encodeChecked(v))(f)
		f.Add(b)
		f.Add(bytes.Split(b, []byte("\n"))[0])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		line, _, _ := bytes.Cut(b, []byte("\n"))
		for _, b := range [][]byte{b, fmt.Appendf(nil, "%s\n%08x\n", line, crc32.Checksum(line, castagnoli))} {
			for _, v := range [][2]any{{new(metaState), new(metaState)}, {new(record), new(record)}, {new(snapMeta), new(snapMeta)}} {
				if decodeChecked(b, v[0]) != nil {
					continue
				}
				again, err := encodeChecked(v[0])
				if err == nil {
					err = decodeChecked(again, v[1])
				}
				if text, _ := encodeChecked(v[1]); err != nil || !bytes.Equal(again, text) {
					t.Fatalf("%s became %s, %v", again, text, err)
				}
			}
		}
	})
}
