package command

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/tree"
)

// The layout of a Raft entry. All integers are big-endian.
//
//	entry       = format:1 kind:1 (leaderStart | batch)
//	leaderStart = server:1 flags:1 incarnation:8 time:8 policy:4 level:4 cluster:16 config:4+n
//	batch       = incarnation:8 seq:8 time:8 policy:4 checkIndex:8 checkDigest:8 run*
//	run         = server:1 nonce:8 first:8 count:4 size:4 command*
//
// A run consists of consecutive commands of one server. They are numbered since
// that server's boot, and first is the number of the first command. command.go has
// the layout of a command. checkDigest is the digest of the leader's state after
// the earlier entry at checkIndex, for the other servers to compare; checkIndex 0
// means none.

// Format is the layout version that this code writes and reads.
const Format = 1

// Level is the newest behaviour level of the state machine that this code knows.
//
//	1  the first level
//	2  restores into a running ensemble
//	3  the membership marks the lines that a reconfig has named
//	4  the servers can follow an Apache ZooKeeper ensemble
const Level = 4

// The kinds of entry.
const (
	EntryLeaderStart = 1
	EntryBatch       = 2
)

// Lengths of the fixed parts in bytes.
const (
	entryHeaderSize = 2
	leaderStartSize = entryHeaderSize + 1 + 1 + 8 + 8 + 4 + 4 + ClusterIDSize + 4
	BatchHeaderSize = entryHeaderSize + 8 + 8 + 8 + 4 + 8 + 8
	RunHeaderSize   = 1 + 8 + 8 + 4 + 4
)

// ClusterIDSize is the length of a cluster id in bytes.
const ClusterIDSize = 16

// ClusterID permanently identifies one history of the state.
type ClusterID [ClusterIDSize]byte

// Flags of a LeaderStart.
const (
	// FlagStandalone: the leader is the only voter, so no write can have been lost with
	// an earlier leader, and the epoch stays the same.
	FlagStandalone = 1 << iota
	// FlagConfig: config replaces the membership in the state.
	FlagConfig
)

// errShortEntry reports an entry that ends before its last field.
var errShortEntry = errors.New("entry ends early")

// LeaderStart is the first entry of every leadership.
type LeaderStart struct {
	Server      uint8
	Flags       uint8
	Incarnation uint64 // random; every batch of this leadership carries it
	Time        int64  // the leader's wall clock, milliseconds
	Policy      tree.Policy
	Level       uint32
	Cluster     ClusterID
	Config      []byte
}

// Append appends the encoding of s.
func (s *LeaderStart) Append(b []byte) []byte {
	b = append(b, Format, EntryLeaderStart, s.Server, s.Flags)
	b = binary.BigEndian.AppendUint64(b, s.Incarnation)
	b = binary.BigEndian.AppendUint64(b, uint64(s.Time))
	b = binary.BigEndian.AppendUint32(b, uint32(s.Policy))
	b = binary.BigEndian.AppendUint32(b, s.Level)
	b = append(b, s.Cluster[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.Config)))
	return append(b, s.Config...)
}

// Decode reads s from a whole entry; config aliases it.
func (s *LeaderStart) Decode(b []byte) error {
	if len(b) < leaderStartSize {
		return errShortEntry
	}
	s.Server, s.Flags = b[2], b[3]
	s.Incarnation = binary.BigEndian.Uint64(b[4:])
	s.Time = int64(binary.BigEndian.Uint64(b[12:]))
	s.Policy = tree.Policy(binary.BigEndian.Uint32(b[20:]))
	s.Level = binary.BigEndian.Uint32(b[24:])
	copy(s.Cluster[:], b[28:])
	n := binary.BigEndian.Uint32(b[leaderStartSize-4:])
	s.Config = b[leaderStartSize:]
	if uint64(n) != uint64(len(s.Config)) {
		return fmt.Errorf("config of %d bytes with %d left", n, len(s.Config))
	}
	return nil
}

// Check is a leader's claim about the state after the entry at index.
type Check struct {
	Index, Digest uint64
}

// BatchHeader is the header of an entry of commands.
type BatchHeader struct {
	Incarnation uint64
	Seq         uint64 // 1, 2, … within the incarnation
	Time        int64  // the leader's wall clock, milliseconds
	Policy      tree.Policy
	Check       Check
}

// Append appends the encoding of h.
func (h *BatchHeader) Append(b []byte) []byte {
	b = append(b, Format, EntryBatch)
	b = binary.BigEndian.AppendUint64(b, h.Incarnation)
	b = binary.BigEndian.AppendUint64(b, h.Seq)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Time))
	b = binary.BigEndian.AppendUint32(b, uint32(h.Policy))
	b = binary.BigEndian.AppendUint64(b, h.Check.Index)
	return binary.BigEndian.AppendUint64(b, h.Check.Digest)
}

// Decode reads h from the start of a whole entry and returns the runs.
func (h *BatchHeader) Decode(b []byte) (runs []byte, err error) {
	if len(b) < BatchHeaderSize {
		return nil, errShortEntry
	}
	h.Incarnation = binary.BigEndian.Uint64(b[2:])
	h.Seq = binary.BigEndian.Uint64(b[10:])
	h.Time = int64(binary.BigEndian.Uint64(b[18:]))
	h.Policy = tree.Policy(binary.BigEndian.Uint32(b[26:]))
	h.Check.Index = binary.BigEndian.Uint64(b[30:])
	h.Check.Digest = binary.BigEndian.Uint64(b[38:])
	return b[BatchHeaderSize:], nil
}

// RunHeader is the header of a run.
type RunHeader struct {
	Server uint8
	Nonce  uint64 // random; identifies one boot of that server
	First  uint64 // number of the first command since that boot
	Count  uint32
	Size   uint32 // length of the commands in bytes
}

// Put writes h into b, which has at least RunHeaderSize bytes.
func (h *RunHeader) Put(b []byte) {
	b[0] = h.Server
	binary.BigEndian.PutUint64(b[1:], h.Nonce)
	binary.BigEndian.PutUint64(b[9:], h.First)
	binary.BigEndian.PutUint32(b[17:], h.Count)
	binary.BigEndian.PutUint32(b[21:], h.Size)
}

// Decode reads h from the start of b and returns the run's commands and the bytes after
// the run.
func (h *RunHeader) Decode(b []byte) (commands, rest []byte, err error) {
	if len(b) < RunHeaderSize {
		return nil, nil, errShortEntry
	}
	h.Server = b[0]
	h.Nonce = binary.BigEndian.Uint64(b[1:])
	h.First = binary.BigEndian.Uint64(b[9:])
	h.Count = binary.BigEndian.Uint32(b[17:])
	h.Size = binary.BigEndian.Uint32(b[21:])
	b = b[RunHeaderSize:]
	switch {
	case uint64(h.Size) > uint64(len(b)):
		return nil, nil, fmt.Errorf("run of %d bytes with %d left: %w", h.Size, len(b), errShortEntry)
	case uint64(h.Count)*commandMin > uint64(h.Size):
		return nil, nil, fmt.Errorf("run of %d commands in %d bytes", h.Count, h.Size)
	}
	return b[:h.Size], b[h.Size:], nil
}

// EntryKind returns the kind of an entry, or an error if this code must not apply it.
// An entry of an unknown format may mean anything.
func EntryKind(b []byte) (byte, error) {
	switch {
	case len(b) < entryHeaderSize:
		return 0, errShortEntry
	case b[0] != Format:
		return 0, fmt.Errorf("entry of format %d, this server knows %d: it was written by another version", b[0], Format)
	case b[1] != EntryLeaderStart && b[1] != EntryBatch:
		return 0, fmt.Errorf("entry of unknown kind %d", b[1])
	}
	return b[1], nil
}
