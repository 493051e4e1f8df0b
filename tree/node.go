package tree

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// node is a Node that this package can change.
type node = arena.Node

// Node is a znode. It is valid until the next transaction, which may delete the znode and
// reuse the memory for another.
type Node arena.Node

// Path returns the full path; "/" for the root.
func (n *Node) Path() string { return (*node)(n).Path() }

// Data returns the data, which is immutable; nil for null.
func (n *Node) Data() []byte { return (*node)(n).Data() }

// ACL returns the access control list, which is shared and immutable.
func (n *Node) ACL() []proto.ACL { return (*node)(n).State().ACL.List() }

// Allows is Allowed for the list of a znode.
func (n *Node) Allows(perms proto.Perms, ids []proto.ID) bool {
	return (*node)(n).State().ACL.Allows(perms, ids)
}

// NumChildren returns the number of direct children.
func (n *Node) NumChildren() int { return (*node)(n).NumChildren() }

// Stat fills s with the metadata that clients see.
func (n *Node) Stat(s *proto.Stat) { stat((*node)(n), s) }

// stat fills s with the metadata that clients see.
func stat(n *node, s *proto.Stat) {
	state, kids := n.State(), int32(n.NumChildren())
	*s = proto.Stat{
		Czxid:    state.Czxid,
		Mzxid:    state.Mzxid,
		Ctime:    state.Ctime,
		Mtime:    state.Mtime,
		Version:  state.Version,
		Cversion: 2*state.Cversion - kids, // counts removed children too
		Aversion: state.Aversion,

		DataLength:  int32(state.DataLen()),
		NumChildren: kids,
		Pzxid:       state.Pzxid,
	}
	if n.Kind() == arena.Ephemeral {
		s.EphemeralOwner = n.Owner()
	}
}

// Owners of znodes that no session owns, as ZooKeeper stores them.
const (
	containerOwner = -1 << 63
	ttlOwner       = -1 << 56 // 0xff in the top byte, the time to live in the low 40 bits
)

// kindOf returns the kind of a znode with that owner, as ZooKeeper stores it. Session ids
// have the server's id in the top byte. They are never 0 or containerOwner, and the ids
// of server 255 have a bit set in the next two bytes (session.Table).
func kindOf(owner int64) arena.Kind {
	switch {
	case owner == 0:
		return arena.Persistent
	case owner == containerOwner:
		return arena.Container
	case owner>>40 == ttlOwner>>40:
		return arena.TTL
	}
	return arena.Ephemeral
}

// timeToLive returns the milliseconds after which n may be removed; 0 unless n
// has a time to live.
func timeToLive(n *node) int64 {
	if n.Kind() != arena.TTL {
		return 0
	}
	return n.Owner() & proto.MaxTTL
}
