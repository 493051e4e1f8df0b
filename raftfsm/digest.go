package raftfsm

import (
	"encoding/binary"
	"fmt"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
)

// digestsKept is how many entries back a server can compare its state with a leader's
// claim. A claim is at most as old as the few entries in flight.
const digestsKept = 256

// digestRing holds the digests of the most recent states.
type digestRing [digestsKept]command.Check

func (r *digestRing) note(c command.Check) { r[c.Index%digestsKept] = c }

// compare returns an error if this server's state differed from the leader's after the
// same entry. One of the two is wrong, and if the server went on, clients could see both
// states.
func (r *digestRing) compare(c command.Check) error {
	mine := r[c.Index%digestsKept]
	if c.Index == 0 || mine.Index != c.Index || mine.Digest == c.Digest {
		return nil
	}
	return fmt.Errorf("this server's state differs from the leader's after entry %d: digest %#x, the leader's is %#x", c.Index, mine.Digest, c.Digest)
}

// rowDigest mixes a session into 64 bits. It is part of the log format.
func rowDigest(s session.Session) uint64 {
	h := mix(uint64(s.ID)) ^ mix(s.Gen+1)
	h = mix(h ^ uint64(uint32(s.Timeout))<<8 ^ uint64(s.Server))
	h = mix(h ^ binary.BigEndian.Uint64(s.Password[:]))
	return mix(h ^ binary.BigEndian.Uint64(s.Password[8:]))
}

// mix spreads the bits of x (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
