package raftfsm

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
// A run holds consecutive commands of one server. They are numbered since that server's
// boot, and first is the number of the first one. command.go has the layout of a
// command. checkDigest is the digest of the leader's state after the earlier entry at
// checkIndex, for the other servers to compare; checkIndex 0 means none.

// format is the layout version that this code writes and reads.
const format = 1

// level is the newest behaviour level of the state machine that this code knows.
//
//	1  the first level
//	2  restores into a running ensemble
//	3  the membership marks the lines that a reconfig has named
const level = 3

// The kinds of entry.
const (
	entryLeaderStart = 1
	entryBatch       = 2
)

const (
	entryHeaderSize = 2
	leaderStartSize = entryHeaderSize + 1 + 1 + 8 + 8 + 4 + 4 + clusterIDSize + 4
	batchHeaderSize = entryHeaderSize + 8 + 8 + 8 + 4 + 8 + 8
	runHeaderSize   = 1 + 8 + 8 + 4 + 4
)

// clusterIDSize is the length of a cluster id in bytes.
const clusterIDSize = 16

// clusterID permanently identifies one history of the state.
type clusterID [clusterIDSize]byte

// Flags of a leaderStart.
const (
	// flagStandalone: the leader is the only voter, so no write can have been lost with
	// an earlier leader, and the epoch stays the same.
	flagStandalone = 1 << iota
	// flagConfig: config replaces the membership in the state.
	flagConfig
)

// errShortEntry reports an entry that ends before its last field.
var errShortEntry = errors.New("entry ends early")

// leaderStart is the first entry of every leadership.
type leaderStart struct {
	server      uint8
	flags       uint8
	incarnation uint64 // random; every batch of this leadership carries it
	time        int64  // the leader's wall clock, milliseconds
	policy      tree.Policy
	level       uint32
	cluster     clusterID
	config      []byte
}

func (s *leaderStart) append(b []byte) []byte {
	b = append(b, format, entryLeaderStart, s.server, s.flags)
	b = binary.BigEndian.AppendUint64(b, s.incarnation)
	b = binary.BigEndian.AppendUint64(b, uint64(s.time))
	b = binary.BigEndian.AppendUint32(b, uint32(s.policy))
	b = binary.BigEndian.AppendUint32(b, s.level)
	b = append(b, s.cluster[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(s.config)))
	return append(b, s.config...)
}

// decode reads s from a whole entry; config aliases it.
func (s *leaderStart) decode(b []byte) error {
	if len(b) < leaderStartSize {
		return errShortEntry
	}
	s.server, s.flags = b[2], b[3]
	s.incarnation = binary.BigEndian.Uint64(b[4:])
	s.time = int64(binary.BigEndian.Uint64(b[12:]))
	s.policy = tree.Policy(binary.BigEndian.Uint32(b[20:]))
	s.level = binary.BigEndian.Uint32(b[24:])
	copy(s.cluster[:], b[28:])
	n := binary.BigEndian.Uint32(b[leaderStartSize-4:])
	s.config = b[leaderStartSize:]
	if uint64(n) != uint64(len(s.config)) {
		return fmt.Errorf("config of %d bytes with %d left", n, len(s.config))
	}
	return nil
}

// check is a leader's claim about the state after the entry at index.
type check struct {
	index, digest uint64
}

// batchHeader is the header of an entry of commands.
type batchHeader struct {
	incarnation uint64
	seq         uint64 // 1, 2, … within the incarnation
	time        int64  // the leader's wall clock, milliseconds
	policy      tree.Policy
	check       check
}

func (h *batchHeader) append(b []byte) []byte {
	b = append(b, format, entryBatch)
	b = binary.BigEndian.AppendUint64(b, h.incarnation)
	b = binary.BigEndian.AppendUint64(b, h.seq)
	b = binary.BigEndian.AppendUint64(b, uint64(h.time))
	b = binary.BigEndian.AppendUint32(b, uint32(h.policy))
	b = binary.BigEndian.AppendUint64(b, h.check.index)
	return binary.BigEndian.AppendUint64(b, h.check.digest)
}

// decode reads h from the start of a whole entry and returns the runs.
func (h *batchHeader) decode(b []byte) (runs []byte, err error) {
	if len(b) < batchHeaderSize {
		return nil, errShortEntry
	}
	h.incarnation = binary.BigEndian.Uint64(b[2:])
	h.seq = binary.BigEndian.Uint64(b[10:])
	h.time = int64(binary.BigEndian.Uint64(b[18:]))
	h.policy = tree.Policy(binary.BigEndian.Uint32(b[26:]))
	h.check.index = binary.BigEndian.Uint64(b[30:])
	h.check.digest = binary.BigEndian.Uint64(b[38:])
	return b[batchHeaderSize:], nil
}

// runHeader is the header of a run.
type runHeader struct {
	server uint8
	nonce  uint64 // random; identifies one boot of that server
	first  uint64 // number of the first command since that boot
	count  uint32
	size   uint32 // length of the commands in bytes
}

// put writes h into b, which has at least runHeaderSize bytes.
func (h *runHeader) put(b []byte) {
	b[0] = h.server
	binary.BigEndian.PutUint64(b[1:], h.nonce)
	binary.BigEndian.PutUint64(b[9:], h.first)
	binary.BigEndian.PutUint32(b[17:], h.count)
	binary.BigEndian.PutUint32(b[21:], h.size)
}

// decode reads h from the start of b and returns the run's commands and the bytes after
// the run.
func (h *runHeader) decode(b []byte) (commands, rest []byte, err error) {
	if len(b) < runHeaderSize {
		return nil, nil, errShortEntry
	}
	h.server = b[0]
	h.nonce = binary.BigEndian.Uint64(b[1:])
	h.first = binary.BigEndian.Uint64(b[9:])
	h.count = binary.BigEndian.Uint32(b[17:])
	h.size = binary.BigEndian.Uint32(b[21:])
	b = b[runHeaderSize:]
	switch {
	case uint64(h.size) > uint64(len(b)):
		return nil, nil, fmt.Errorf("run of %d bytes with %d left: %w", h.size, len(b), errShortEntry)
	case uint64(h.count)*commandMin > uint64(h.size):
		return nil, nil, fmt.Errorf("run of %d commands in %d bytes", h.count, h.size)
	}
	return b[:h.size], b[h.size:], nil
}

// entryKind returns the kind of an entry, or an error if this code must not apply it.
// An entry of an unknown format may mean anything.
func entryKind(b []byte) (byte, error) {
	switch {
	case len(b) < entryHeaderSize:
		return 0, errShortEntry
	case b[0] != format:
		return 0, fmt.Errorf("entry of format %d, this server knows %d: it was written by another version", b[0], format)
	case b[1] != entryLeaderStart && b[1] != entryBatch:
		return 0, fmt.Errorf("entry of unknown kind %d", b[1])
	}
	return b[1], nil
}
