package tree

import (
	"unsafe"

	"github.com/zkgo/zkgo/proto"
)

// kind says what ends a znode's life.
type kind uint8

const (
	persistent kind = iota
	ephemeral       // the end of the session that owns it
	container       // the removal of its last child
	ttl             // time without a change of its data and without children
)

// state is what is stored of a znode: the part that snapshots, undo images and
// digests cover.
type state struct {
	path                        string
	czxid, mzxid, pzxid         int64
	ctime, mtime                int64
	owner                       int64     // as ZooKeeper stores it, see ownerOf
	data                        *byte     // first byte of immutable data
	acl                         *aclEntry // never nil
	size                        int32     // length of data, −1 for null
	version, cversion, aversion int32     // cversion counts created children, Stat shows another number
	crc                         uint32    // of path and data: the part of the digest that a change of the stat leaves alone
	kind                        kind
}

// Node is a znode. Its size is what a million of them cost: 128 bytes.
type Node struct {
	state
	parent *Node    // nil for the root
	kids   *[]*Node // nil until there was a child
	pos    uint32   // index in the parent's kids
	epoch  uint32   // of the newest snapshot when it last changed
}

// Path returns the full path; "/" for the root.
func (n *Node) Path() string { return n.path }

// Data returns the data, which is immutable; nil for null.
func (n *Node) Data() []byte { return n.bytes() }

// ACL returns the access control list, which is shared and immutable.
func (n *Node) ACL() []proto.ACL { return n.acl.list }

// NumChildren returns the number of direct children.
func (n *Node) NumChildren() int {
	if n.kids == nil {
		return 0
	}
	return len(*n.kids)
}

// bytes returns the stored data.
func (s *state) bytes() []byte {
	if s.size <= 0 {
		if s.size < 0 {
			return nil
		}
		return []byte{}
	}
	return unsafe.Slice(s.data, s.size)
}

// dataLen returns the length that a Stat shows: 0 also for null.
func (s *state) dataLen() int64 { return int64(max(s.size, 0)) }

// setBytes stores b, which must not change any more.
func (s *state) setBytes(b []byte) {
	s.data, s.size = unsafe.SliceData(b), int32(len(b))
	if len(b) == 0 {
		s.data = nil
	}
	if b == nil {
		s.size = -1
	}
}

// ownCopy returns b in memory of its own; null stays null.
func ownCopy(b []byte) []byte {
	if b == nil {
		return nil
	}
	c := make([]byte, len(b))
	copy(c, b)
	return c
}

// name returns the last component of the path.
func (n *Node) name() string {
	if n.parent == nil {
		return ""
	}
	if n.parent.parent == nil {
		return n.path[1:]
	}
	return n.path[len(n.parent.path)+1:]
}
