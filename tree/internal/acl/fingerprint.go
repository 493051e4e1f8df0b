package acl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/zkgo/zkgo/proto"
)

// Fingerprint represents an identity in a transaction of a client that has many or long
// identities. It has a fixed size in the log, and is enough to decide whether an ACL
// names the identity. We use a prefix of a SHA-256 hash that is long enough to make a
// second identity with the same fingerprint infeasible.
type Fingerprint [16]byte

// FingerprintOf returns the fingerprint of id.
func FingerprintOf(id proto.ID) Fingerprint {
	var room [128]byte
	b := binary.BigEndian.AppendUint32(room[:0], uint32(len(id.Scheme)))
	b = append(append(b, id.Scheme...), id.ID...)
	sum := sha256.Sum256(b)
	return Fingerprint(sum[:len(Fingerprint{})])
}

// Compare orders fingerprints.
func (f Fingerprint) Compare(g Fingerprint) int { return bytes.Compare(f[:], g[:]) }

// AllowsPrints reports whether one of prints, which are sorted, has one of perms. It computes
// the fingerprints of a list only once, because a list can have 80,000 entries. Only the
// goroutine that applies the log calls AllowsPrints.
func (e *Entry) AllowsPrints(perms proto.Perms, prints []Fingerprint) bool {
	if e.prints == nil {
		e.prints = make([]Fingerprint, len(e.list))
		for i := range e.list {
			e.prints[i] = FingerprintOf(e.list[i].ID)
		}
	}
	for i := range e.list {
		if e.list[i].Perms&perms == 0 {
			continue
		}
		if _, found := slices.BinarySearchFunc(prints, e.prints[i], Fingerprint.Compare); found {
			return true
		}
	}
	return false
}
