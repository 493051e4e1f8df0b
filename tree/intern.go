package tree

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/zkgo/zkgo/proto"
)

// aclEntry is one list, shared by all nodes that have it.
type aclEntry struct {
	list   []proto.ACL   // immutable
	hash   uint64        // the same in every process
	refs   int           // nodes that have it; 0: not in the table
	index  *aclIndex     // of a long list; nil for a short one
	prints []Fingerprint // fingerprints of the list; nil until needed
	next   *aclEntry     // another list with the same hash
}

// aclTable holds the lists in use, by hash.
type aclTable struct {
	byHash map[uint64]*aclEntry
}

func newACLTable() aclTable { return aclTable{byHash: make(map[uint64]*aclEntry)} }

// intern returns the entry for list and adds a reference to it. A new entry copies
// list and its strings.
func (a *aclTable) intern(list []proto.ACL) *aclEntry {
	h := hashACL(list)
	for e := a.byHash[h]; e != nil; e = e.next {
		if slices.Equal(e.list, list) {
			e.refs++
			return e
		}
	}
	e := &aclEntry{list: slices.Clone(list), hash: h}
	for i := range e.list {
		id := &e.list[i].ID
		id.Scheme, id.ID = strings.Clone(id.Scheme), strings.Clone(id.ID)
	}
	e.index = indexACL(e.list)
	a.retain(e)
	return e
}

// retain adds a reference to e.
func (a *aclTable) retain(e *aclEntry) {
	if e.refs == 0 {
		e.next = a.byHash[e.hash]
		a.byHash[e.hash] = e
	}
	e.refs++
}

// release drops a reference to e.
func (a *aclTable) release(e *aclEntry) {
	if e.refs--; e.refs > 0 {
		return
	}
	first := a.byHash[e.hash]
	switch {
	case first == e && e.next == nil:
		delete(a.byHash, e.hash)
	case first == e:
		a.byHash[e.hash] = e.next
	default:
		for first.next != e {
			first = first.next
		}
		first.next = e.next
	}
	e.next = nil
}

// hashACL hashes list the same way in every process (FNV-1a).
func hashACL(list []proto.ACL) uint64 {
	h := uint64(14695981039346656037)
	for i := range list {
		a := &list[i]
		h = (h ^ uint64(uint32(a.Perms))) * 1099511628211
		h = hashString(h, a.ID.Scheme)
		h = hashString(h, a.ID.ID)
	}
	return h
}

func hashString(h uint64, s string) uint64 {
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return (h ^ uint64(len(s))) * 1099511628211
}

// stringBytes returns the bytes of s, which must not be changed.
func stringBytes(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// viewString returns b as a string that is valid until b changes.
func viewString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
