package raftlog

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// castagnoli is read-only after its initialization; CRC32C has hardware support.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

const (
	// sealMark is the first byte of Log.Extensions as this package writes it.
	sealMark = 0xC3
	sealLen  = 5
)

var (
	errNoChecksum  = errors.New("entry carries no checksum")
	errBadChecksum = errors.New("checksum mismatch")
)

// entrySum covers everything that determines an entry's effect. It excludes AppendedAt,
// which is only informational. We pass scratch because a local buffer would escape to the
// heap.
func entrySum(l *raft.Log, scratch *[17]byte) uint32 {
	binary.LittleEndian.PutUint64(scratch[0:], l.Index)
	binary.LittleEndian.PutUint64(scratch[8:], l.Term)
	scratch[16] = byte(l.Type)
	return crc32.Update(crc32.Update(0, castagnoli, scratch[:]), castagnoli, l.Data)
}

// sealAll adds a checksum to every entry that has none (the leader's own) and verifies
// the existing ones (of entries received from a leader).
func sealAll(logs []*raft.Log) error {
	var slab []byte
	scratch := new([17]byte)
	for i, l := range logs {
		if len(l.Extensions) != 0 {
			if err := verify(l, scratch); err != nil {
				return fmt.Errorf("entry %d as received: %w", l.Index, err)
			}
			continue
		}
		if slab == nil {
			slab = make([]byte, 0, sealLen*(len(logs)-i)) // one allocation for the batch
		}
		n := len(slab)
		slab = append(slab, sealMark)
		slab = binary.LittleEndian.AppendUint32(slab, entrySum(l, scratch))
		l.Extensions = slab[n:len(slab):len(slab)]
	}
	return nil
}

// CheckReceived verifies the checksum of an entry that another server sent, if it has
// one: storing an entry with a wrong checksum fails.
func CheckReceived(l *raft.Log) error {
	if len(l.Extensions) == 0 {
		return nil
	}
	return verifySeal(l)
}

func verifySeal(l *raft.Log) error { return verify(l, new([17]byte)) }

func verify(l *raft.Log, scratch *[17]byte) error {
	if len(l.Extensions) != sealLen || l.Extensions[0] != sealMark {
		return errNoChecksum
	}
	if binary.LittleEndian.Uint32(l.Extensions[1:]) != entrySum(l, scratch) {
		return errBadChecksum
	}
	return nil
}

// encodeChecked returns v as one line of JSON, and a second line with the CRC32C of the
// first.
func encodeChecked(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	return fmt.Appendf(b, "\n%08x\n", crc32.Checksum(b, castagnoli)), err
}

func decodeChecked(b []byte, v any) error {
	line, sum, _ := bytes.Cut(b, []byte("\n"))
	if string(sum) != fmt.Sprintf("%08x\n", crc32.Checksum(line, castagnoli)) {
		return fmt.Errorf("damaged: %w", errBadChecksum)
	}
	return json.Unmarshal(line, v)
}
