package schemes

import (
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// Bounds of the identities of one connection. A client that proves more fails to
// authenticate. Real clients have a handful; a provider may return one for each
// group of a user.
const (
	MaxIdentities = 256
	MaxBytes      = 16 << 10
)

// MaxCarriedBytes bounds the bytes of identities that go with each command. If a client
// has more, its commands carry only fingerprints (tree.Fingerprint), because the log
// should not repeat the same identities in every entry.
const MaxCarriedBytes = 512

// Set is the set of identities that one client has proved. One goroutine, the reader of the
// connection, adds to it and uses Carried; any may use All.
type Set struct {
	all    atomic.Pointer[[]proto.ID]
	short  []proto.ID         // the identities that go with each command in full
	prints []tree.Fingerprint // fingerprints of the other identities, sorted
}

// All returns the identities.
func (s *Set) All() []proto.ID { return *s.all.Load() }

// Add adds identities, each once. n and bytes are the size of the new set. If it exceeds a
// bound, Add changes nothing and ok is false.
func (s *Set) Add(more ...proto.ID) (n, bytes int, ok bool) {
	ids := slices.Clone(s.All())
	for _, id := range more {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	n, bytes = len(ids), Bytes(ids)
	if n > MaxIdentities || bytes > MaxBytes {
		return n, bytes, false
	}
	s.Replace(ids)
	return n, bytes, true
}

// Bytes returns the length of ids in a command.
func Bytes(ids []proto.ID) int {
	n := 0
	for i := range ids {
		n += 8 + len(ids[i].Scheme) + len(ids[i].ID)
	}
	return n
}

// Replace replaces all identities.
func (s *Set) Replace(ids []proto.ID) {
	s.all.Store(&ids)
	if s.short, s.prints = ids, nil; Bytes(ids) <= MaxCarriedBytes {
		return
	}
	s.short = nil
	for _, id := range ids {
		switch id.Scheme {
		case "ip": // compared by its prefix
			s.short = append(s.short, id)
		case Super:
			s.short = append(s.short, proto.ID{Scheme: Super})
		default:
			s.prints = append(s.prints, tree.FingerprintOf(id))
		}
	}
	slices.SortFunc(s.prints, tree.Fingerprint.Compare)
}

// Carried returns the identities and fingerprints that go with a command that needs no
// identity in full.
func (s *Set) Carried() ([]proto.ID, []tree.Fingerprint) { return s.short, s.prints }

// Public returns a copy of ids without their secrets.
func Public(ids []proto.ID) []proto.ID {
	ids = append([]proto.ID{}, ids...)
	for i := range ids {
		switch id := &ids[i]; id.Scheme {
		case Digest:
			id.ID, _, _ = strings.Cut(id.ID, ":")
		case Super:
			id.ID = "" // a super identity from a certificate has a name, which ZooKeeper doesn't show
		}
	}
	return ids
}
