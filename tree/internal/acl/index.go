package acl

import "github.com/zkgo/zkgo/proto"

// indexFrom is the length from which we index a list. For a shorter list, comparing the
// entries one by one is cheap enough.
const indexFrom = 64

// indexFromBytes is the total length of the addresses from which we index a list: an
// address may have any number of leading zeros.
const indexFromBytes = 4 << 10

// index is a long ACL prepared for Allowed. A request can carry a list of 80,000
// entries, or one address of a megabyte, and, in a multi, thousands of operations that
// check it: if we compared each entry each time, all clients would have to wait. With the
// index, the cost of a check depends only on the number of the client's identities.
//
// Permissions of equal identities are merged: an entry grants a permission to a client
// exactly if the merged entries do.
type index struct {
	anyone proto.Perms
	ids    map[proto.ID]proto.Perms // without addresses
	nets   map[ipNet]proto.Perms
	bits   [2][129]bool // lengths of the prefixes in nets, by family
}

// ipNet is a network: the address has zeros after the prefix.
type ipNet struct {
	addr ipAddr
	bits int
}

// masked returns the network of addr with a prefix length.
func masked(addr ipAddr, bits int) ipNet {
	n := ipNet{addr: ipAddr{n: addr.n}, bits: bits}
	for i, left := 0, bits; i < addr.n && left > 0; i, left = i+1, left-8 {
		mask := byte(0xff)
		if left < 8 {
			mask <<= 8 - left
		}
		n.addr.b[i] = addr.b[i] & mask
	}
	return n
}

// family is the position of an address family in index.bits.
func (a ipAddr) family() int {
	if a.n == 4 {
		return 0
	}
	return 1
}

// newIndex returns the index of a list, nil for a short list.
func newIndex(list []proto.ACL) *index {
	if len(list) < indexFrom && addressBytes(list) < indexFromBytes {
		return nil
	}
	x := &index{ids: make(map[proto.ID]proto.Perms), nets: make(map[ipNet]proto.Perms)}
	for i := range list {
		id, perms := list[i].ID, list[i].Perms
		switch {
		case id.Scheme == "world" && id.ID == "anyone":
			x.anyone |= perms
		case id.Scheme != "ip":
			x.ids[id] |= perms
		default:
			if addr, bits, ok := parseNet(id.ID); ok {
				x.nets[masked(addr, bits)] |= perms
				x.bits[addr.family()][bits] = true
			}
		}
	}
	return x
}

// addressBytes returns the total length of the addresses in a list.
func addressBytes(list []proto.ACL) int {
	total := 0
	for i := range list {
		if list[i].ID.Scheme == "ip" {
			total += len(list[i].ID.ID)
		}
	}
	return total
}

// allows is Allowed for the list, but for the scheme super.
func (x *index) allows(perms proto.Perms, ids []proto.ID) bool {
	if x.anyone&perms != 0 {
		return true
	}
	for _, id := range ids {
		if id.Scheme != "ip" {
			if x.ids[id]&perms != 0 {
				return true
			}
			continue
		}
		addr, ok := parseIP(id.ID)
		if !ok {
			continue
		}
		for bits, any := range x.bits[addr.family()] {
			if any && x.nets[masked(addr, bits)]&perms != 0 {
				return true
			}
		}
	}
	return false
}

// Allows is Allowed for the list of e.
func (e *Entry) Allows(perms proto.Perms, ids []proto.ID) bool {
	if e.index == nil {
		return Allowed(e.list, perms, ids)
	}
	for i := range ids {
		if ids[i].Scheme == "super" {
			return true
		}
	}
	return e.index.allows(perms, ids)
}
