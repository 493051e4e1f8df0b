package raftlog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"

	"github.com/zkgo/zkgo/internal/vfs"
)

// FuzzSegment scans segments of a log. The salt and the checksums of a whole segment
// would stop the fuzzer, so half of its inputs are bodies of a batch.
func FuzzSegment(f *testing.F) {
	info := types.SegmentInfo{ID: 3, BaseIndex: 7}
	const salt = 99
	file := appendBatch(encodeSegmentHeader(info, salt), salt, 0, []types.LogEntry{{Index: 7, Data: []byte("a")}, {Index: 8, Data: []byte("bc")}})
	f.Add(file, uint32(2))
	f.Add(file[segHeaderLen+batchHeaderLen:], uint32(2))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0}, uint32(1))
	f.Fuzz(func(t *testing.T, b []byte, count uint32) {
		forged := encodeSegmentHeader(info, salt)
		head := make([]byte, batchHeaderLen)
		batchHeader{size: batchHeaderLen, count: count, first: 7, body: uint64(len(b)), bodySum: crc32.Checksum(b, castagnoli)}.put(head, salt)
		forged = append(append(forged, head...), b...)
		for _, file := range [][]byte{b, forged} {
			s, err := scanSegment(bytes.NewReader(file), int64(len(file)), info)
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
	})
}

// FuzzLogEntry decodes entries of the log and encodes them to the same bytes again.
func FuzzLogEntry(f *testing.F) {
	var b bytes.Buffer
	if err := new(codec).Encode(&raft.Log{Index: 1, Term: 2, Type: raft.LogNoop, Extensions: []byte("sum"), Data: []byte("x"), AppendedAt: time.Unix(1, 2)}, &b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		var l raft.Log
		if new(codec).Decode(bytes.Clone(b), &l) != nil {
			return
		}
		var again bytes.Buffer
		if err := new(codec).Encode(&l, &again); err != nil || !bytes.Equal(again.Bytes(), b) {
			t.Fatalf("%x became %x, %v", b, again.Bytes(), err)
		}
	})
}

// FuzzRecord decodes the record with term and vote; half of the inputs get a correct
// checksum.
func FuzzRecord(f *testing.F) {
	r := record{floor: 5, snapshot: 4, values: map[string][]byte{"CurrentTerm": {1}, "LastVoteCand": []byte("3")}}
	f.Add(r.encode())
	f.Add(append([]byte{recordVersion, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, binary.BigEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))} {
			got, err := decodeRecord(b)
			if err != nil {
				continue
			}
			again, err := decodeRecord(got.encode())
			if err != nil || again.floor != got.floor || !reflect.DeepEqual(again.values, got.values) {
				t.Fatalf("%+v became %+v, %v", got, again, err)
			}
		}
	})
}

// FuzzSnapshotMeta reads the metadata of snapshots, with a correct checksum in half of
// the inputs. Metadata that was read and written again reads the same.
func FuzzSnapshotMeta(f *testing.F) {
	m := snapMeta{SnapshotMeta: raft.SnapshotMeta{ID: "snap", Index: 5, Term: 2, Version: 1, Size: 9}, StateSum: 7}
	b, err := m.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add(bytes.Split(b, []byte("\n"))[0])
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := filepath.Join(t.TempDir(), "snap")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		read := func(b []byte) (*snapMeta, error) {
			if err := os.WriteFile(filepath.Join(dir, snapMetaName), b, 0o600); err != nil {
				t.Fatal(err)
			}
			return readSnapMeta(vfs.OS{}, dir)
		}
		line, _, _ := bytes.Cut(b, []byte("\n"))
		for _, b := range [][]byte{b, append(bytes.Clone(line), []byte("\n"+hexSum(line)+"\n")...)} {
			got, err := read(b)
			if err != nil {
				continue
			}
			text, err := got.encode()
			if err != nil {
				t.Fatal(err)
			}
			if again, err := read(text); err != nil || !reflect.DeepEqual(again, got) {
				t.Fatalf("%+v became %+v, %v", got, again, err)
			}
		}
	})
}

func hexSum(b []byte) string {
	const digits = "0123456789abcdef"
	sum, out := crc32.Checksum(b, castagnoli), make([]byte, 8)
	for i := range out {
		out[i] = digits[sum>>(28-4*i)&15]
	}
	return string(out)
}
