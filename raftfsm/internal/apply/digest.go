package apply

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
)

// digestsKept is the maximum age, in entries, of a claim that a server can compare with
// its state. A claim is at most as old as the few entries in flight.
const digestsKept = 256

// Claims are this server's digests of the most recent states. It compares them with a
// leader's claims and, as the leader, claims the newest digest.
type Claims struct {
	ring   [digestsKept]command.Check
	newest atomic.Pointer[command.Check]
}

// note remembers the digest of the state after an entry and publishes it for the next
// batches.
func (r *Claims) note(index uint64, s *State) {
	s.Tree.RLock()
	c := command.Check{Index: index, Digest: s.digest()}
	s.Tree.RUnlock()
	r.ring[index%digestsKept] = c
	r.newest.Store(&c)
}

// begin forgets all states except a snapshot's, which this server doesn't claim.
func (r *Claims) begin(c command.Check) {
	r.ring = [digestsKept]command.Check{}
	r.ring[c.Index%digestsKept] = c
	r.newest.Store(nil)
}

// Last returns the newest digest, for a leader to claim.
func (r *Claims) Last() command.Check {
	if c := r.newest.Load(); c != nil {
		return *c
	}
	return command.Check{}
}

// busy returns a function that reports whether entries were applied since its last
// call.
func (r *Claims) busy() func() bool {
	seen := r.newest.Load()
	return func() bool {
		before := seen
		seen = r.newest.Load()
		return seen != before
	}
}

// compare returns an error if this server's state differed from the leader's after the
// same entry. One of the two is wrong, and if the server continued, clients could see both
// states.
func (r *Claims) compare(c command.Check) error {
	mine := r.ring[c.Index%digestsKept]
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

// diverged dumps this server's state for debugging, and returns err with the location of
// the dump.
func (m *Machine) diverged(err error) error {
	return fmt.Errorf("%w; %s", err, m.Evidence(func(w io.Writer) error { return m.dump(w, err) }))
}
