package tree

import (
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// kind is the kind of a znode: it determines what ends the znode's life.
type kind uint8

const (
	persistent kind = iota
	ephemeral       // the end of the session that owns it
	container       // the removal of its last child
	ttl             // its time to live, without children and without a change of its data
)

// state is the part of a znode that snapshots, undo images and digests cover.
type state struct {
	text
	cversion, aversion  int32     // cversion counts created children; Stat shows another number
	acl                 *aclEntry // never nil
	czxid, mzxid, pzxid int64
	ctime, mtime        int64
}

// Node is a znode. We keep it small, because a tree can hold millions of nodes: 96 bytes,
// plus about 10 bytes more than path and data for its text. It is valid until the next
// transaction, which may delete the znode and reuse the memory for another.
type Node struct {
	state
	kids   *[]number // nil if there are no children
	number number    // its own
	parent number    // none for the root
	pos    uint32    // index in the parent's kids
	epoch  uint32    // of the newest snapshot when it last changed
}

// Path returns the full path; "/" for the root.
func (n *Node) Path() string { return n.path() }

// Data returns the data, which is immutable; nil for null.
func (n *Node) Data() []byte { return n.bytes() }

// ACL returns the access control list, which is shared and immutable.
func (n *Node) ACL() []proto.ACL { return n.acl.list }

// NumChildren returns the number of direct children.
func (n *Node) NumChildren() int { return len(n.children()) }

// name returns the last component of the path; "" for the root.
func (n *Node) name() string {
	path := n.path()
	return path[strings.LastIndexByte(path, '/')+1:]
}
