package acl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// Entry is one list, shared by all znodes that have it.
type Entry struct {
	list   []proto.ACL   // immutable
	hash   uint64        // the same in every process
	refs   int           // nodes that have it; 0: not in the table
	index  *index        // of a long list; nil for a short one
	prints []Fingerprint // fingerprints of the list; nil until needed
	next   *Entry        // another list with the same hash
}

// Table contains the lists in use, by hash.
type Table struct {
	byHash map[uint64]*Entry
}

// NewTable returns an empty table.
func NewTable() Table { return Table{byHash: make(map[uint64]*Entry)} }

// Intern returns the entry for list and adds a reference to it. A new entry copies
// list and its strings.
func (a *Table) Intern(list []proto.ACL) *Entry {
	h := hashList(list)
	for e := a.byHash[h]; e != nil; e = e.next {
		if slices.Equal(e.list, list) {
			e.refs++
			return e
		}
	}
	e := &Entry{list: slices.Clone(list), hash: h}
	for i := range e.list {
		id := &e.list[i].ID
		id.Scheme, id.ID = strings.Clone(id.Scheme), strings.Clone(id.ID)
	}
	e.index = newIndex(e.list)
	a.Retain(e)
	return e
}

// Retain adds a reference to e.
func (a *Table) Retain(e *Entry) {
	if e.refs == 0 {
		a.add(e)
	}
	e.refs++
}

func (a *Table) add(e *Entry) {
	e.next = a.byHash[e.hash]
	a.byHash[e.hash] = e
}

// Copy adds a copy of e with as many references to a, which may be another table.
func (a *Table) Copy(e *Entry) *Entry {
	c := &Entry{list: e.list, hash: e.hash, refs: e.refs, index: e.index}
	a.add(c)
	return c
}

// List returns the list, which is immutable.
func (e *Entry) List() []proto.ACL { return e.list }

// Hash returns a hash of the list that is the same in every process.
func (e *Entry) Hash() uint64 { return e.hash }

// Check verifies that the table contains exactly the lists in refs, with as many
// references.
func (a *Table) Check(refs map[*Entry]int) error {
	stored := 0
	for hash, first := range a.byHash {
		for e := first; e != nil; e = e.next {
			stored++
			if e.hash != hash || hashList(e.list) != hash || e.refs != refs[e] {
				return fmt.Errorf("access control list %v has %d references instead of %d, hash %#x", e.list, e.refs, refs[e], hash)
			}
		}
	}
	if stored != len(refs) {
		return fmt.Errorf("%d access control lists in use, %d stored", len(refs), stored)
	}
	return nil
}

// Release drops a reference to e.
func (a *Table) Release(e *Entry) {
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

// hashList hashes list the same way in every process (FNV-1a).
func hashList(list []proto.ACL) uint64 {
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
