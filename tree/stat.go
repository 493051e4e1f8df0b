package tree

import "github.com/zkgo/zkgo/proto"

// Stat fills s with the metadata that clients see.
func (n *Node) Stat(s *proto.Stat) {
	kids := int32(n.NumChildren())
	*s = proto.Stat{
		Czxid:    n.czxid,
		Mzxid:    n.mzxid,
		Ctime:    n.ctime,
		Mtime:    n.mtime,
		Version:  n.version,
		Cversion: 2*n.cversion - kids, // counts removed children too
		Aversion: n.aversion,

		DataLength:  int32(n.dataLen()),
		NumChildren: kids,
		Pzxid:       n.pzxid,
	}
	if n.kind() == ephemeral {
		s.EphemeralOwner = n.owner()
	}
}

// Owners of znodes that no session owns, as ZooKeeper stores them.
const (
	containerOwner = -1 << 63
	ttlOwner       = -1 << 56 // 0xff in the top byte, the time to live in the low 40 bits
)

// kindOf returns the kind of a znode with that owner, as ZooKeeper stores it.
// Session ids have the server's id in the top byte. They are never 0 or
// containerOwner, and those of server 255 have a bit set in the next two bytes
// (session.Table).
func kindOf(owner int64) kind {
	switch {
	case owner == 0:
		return persistent
	case owner == containerOwner:
		return container
	case owner>>40 == ttlOwner>>40:
		return ttl
	}
	return ephemeral
}

// timeToLive returns the milliseconds after which n may be removed; 0 unless n
// has a time to live.
func (n *Node) timeToLive() int64 {
	if n.kind() != ttl {
		return 0
	}
	return n.owner() & proto.MaxTTL
}
