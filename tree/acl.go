package tree

import (
	"strings"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/acl"
)

// Allowed reports whether a client with these identities has one of perms under
// list. An empty list allows everything, and so does an identity of scheme super.
func Allowed(list []proto.ACL, perms proto.Perms, ids []proto.ID) bool {
	return acl.Allowed(list, perms, ids)
}

// Allows is Allowed for the list under which e may be received.
func (e *Event) Allows(perms proto.Perms, ids []proto.ID) bool { return e.access.Allows(perms, ids) }

// allowed is Allowed under the leader's policy.
func (tx *Txn) allowed(n *node, perms proto.Perms) bool {
	return tx.Policy&SkipACL != 0 || n.State().ACL.Allows(perms, tx.IDs) || len(tx.Prints) > 0 && n.State().ACL.AllowsPrints(perms, tx.Prints)
}

// RedactACL returns acl as a client without the ADMIN permission sees it: the
// secret of each digest identity is replaced with x.
func RedactACL(acl []proto.ACL) []proto.ACL {
	out := make([]proto.ACL, len(acl))
	for i, a := range acl {
		if a.ID.Scheme == "digest" {
			if user, _, found := strings.Cut(a.ID.ID, ":"); found {
				a.ID.ID = user + ":x"
			}
		}
		out[i] = a
	}
	return out
}

// NormalizeACL returns the list to store when a client with these identities sends acl. We
// drop duplicates and replace the scheme auth with the identities themselves. The code is
// ErrInvalidACL for a list that ZooKeeper refuses, and ErrMarshalling for a list on which
// ZooKeeper fails with an exception.
func NormalizeACL(acl []proto.ACL, ids []proto.ID, p Policy) ([]proto.ACL, proto.Code) {
	return normalizeACL(make([]proto.ACL, 0, len(acl)), acl, ids, p)
}

// normalizeACL is NormalizeACL, appending to dst.
func normalizeACL(dst, acl []proto.ACL, ids []proto.ID, p Policy) ([]proto.ACL, proto.Code) {
	start := len(dst)
	var code proto.Code
	if len(acl) <= smallACL {
		dst, code = dropDuplicates(dst, acl)
	} else {
		dst, code = dropManyDuplicates(dst, acl)
	}
	if code != proto.Ok {
		return nil, code
	}
	if len(dst) == start {
		return nil, proto.ErrInvalidACL
	}
	auth := 0
	for i := range dst[start:] {
		id := &dst[start+i].ID
		if code := validID(id, p); code != proto.Ok {
			return nil, code
		}
		if id.Scheme == "auth" {
			auth++
			if !authenticated(ids, p) {
				return nil, proto.ErrInvalidACL
			}
		}
	}
	if auth*len(ids) > MaxExpanded {
		return nil, proto.ErrInvalidACL
	}
	if auth > 0 {
		dst = expandAuth(dst, start, ids, p)
	}
	return dst, proto.Ok
}

// smallACL is the length up to which comparing all pairs is fastest.
const smallACL = 16

// dropDuplicates appends acl to dst without duplicates. ZooKeeper compares a new
// entry with the earlier entries field by field and fails when it reaches a null
// field: a null scheme at the first entry with the same permissions, a null id at
// the first entry that also has the same scheme.
func dropDuplicates(dst, acl []proto.ACL) ([]proto.ACL, proto.Code) {
	start := len(dst)
next:
	for i := range acl {
		for j := range dst[start:] {
			have := &dst[start+j]
			if have.Perms != acl[i].Perms {
				continue
			}
			if acl[i].ID.Scheme == proto.NullString {
				return nil, proto.ErrMarshalling
			}
			if have.ID.Scheme != acl[i].ID.Scheme {
				continue
			}
			if acl[i].ID.ID == proto.NullString {
				return nil, proto.ErrMarshalling
			}
			if have.ID.ID == acl[i].ID.ID {
				continue next
			}
		}
		dst = append(dst, acl[i])
	}
	return dst, proto.Ok
}

// dropManyDuplicates is dropDuplicates in linear time. A request can have 80,000 entries,
// and the caller holds the write lock.
func dropManyDuplicates(dst, acl []proto.ACL) ([]proto.ACL, proto.Code) {
	const whatever = "\x00" // the id in keys that represent the permissions alone
	seen := make(map[proto.ACL]bool, len(acl))
	for _, a := range acl {
		if seen[a] && a.ID.Scheme != proto.NullString && a.ID.ID != proto.NullString {
			continue
		}
		perms := proto.ACL{Perms: a.Perms, ID: proto.ID{Scheme: proto.NullString, ID: whatever}}
		scheme := proto.ACL{Perms: a.Perms, ID: proto.ID{Scheme: a.ID.Scheme, ID: proto.NullString}}
		if a.ID.Scheme == proto.NullString && seen[perms] || a.ID.ID == proto.NullString && seen[scheme] {
			return nil, proto.ErrMarshalling
		}
		seen[a], seen[perms], seen[scheme] = true, true, true
		dst = append(dst, a)
	}
	return dst, proto.Ok
}

// Limits that ZooKeeper doesn't have.
const (
	// MaxExpanded limits the number of entries that we expand scheme auth to in one list.
	// Otherwise a single request from a client with hundreds of identities could create a
	// list of millions of entries on every server.
	MaxExpanded = 4096
	// MaxQuotaText is the maximum length of the data of a quota's znodes. We refuse to
	// parse longer data. The four numbers need 120 bytes. We parse the data for every
	// change below the limited path, so with a megabyte of data each small request would
	// cost 25 ms on every server.
	MaxQuotaText = 1 << 10
)

// expandAuth replaces each entry of scheme auth in dst[start:] by an entry for each
// authenticated identity.
func expandAuth(dst []proto.ACL, start int, ids []proto.ID, p Policy) []proto.ACL {
	end := len(dst)
	for i := start; i < end; i++ {
		a := dst[i]
		if a.ID.Scheme != "auth" {
			dst = append(dst, a)
			continue
		}
		for _, id := range ids {
			if authenticates(id.Scheme, p) {
				dst = append(dst, proto.ACL{Perms: a.Perms, ID: id})
			}
		}
	}
	return append(dst[:start], dst[end:]...)
}

// authenticated reports whether one of ids proves the client's identity; an
// address doesn't.
func authenticated(ids []proto.ID, p Policy) bool {
	for i := range ids {
		if authenticates(ids[i].Scheme, p) {
			return true
		}
	}
	return false
}

func authenticates(scheme string, p Policy) bool {
	switch scheme {
	case "digest":
		return true
	case "x509":
		return p&SchemeX509 != 0
	case "sasl":
		return p&SchemeSASL != 0
	}
	return p&SchemeOthers != 0 && otherScheme(scheme)
}

// Fingerprint represents an identity in a transaction of a client that has many or long
// identities. It suffices to decide whether an ACL names the identity, and has a fixed
// size in the log.
type Fingerprint = acl.Fingerprint

// FingerprintOf returns the fingerprint of id.
func FingerprintOf(id proto.ID) Fingerprint { return acl.FingerprintOf(id) }
