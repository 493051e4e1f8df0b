package arena

import (
	"strings"

	"github.com/zkgo/zkgo/tree/internal/acl"
)

// Kind is the kind of a znode: it determines what ends the znode's life.
type Kind uint8

// The kinds.
const (
	Persistent Kind = iota
	Ephemeral       // the end of the session that owns it
	Container       // the removal of its last child
	TTL             // its time to live, without children and without a change of its data
)

// State is the part of a znode that snapshots, undo images and digests cover.
type State struct {
	Text
	Cversion, Aversion  int32      // Cversion counts created children; Stat shows another number
	ACL                 *acl.Entry // nil only while a snapshot is read
	Czxid, Mzxid, Pzxid int64
	Ctime, Mtime        int64
}

// Number identifies a node of an arena. It belongs to one node until that node is vacated.
type Number uint32

// None is no node's number.
const None Number = 0

// Node is a znode. Its size matters, because a tree can have millions of nodes: 96 bytes,
// plus the text, which is about 10 bytes longer than path and data.
type Node struct {
	state  State
	kids   *[]Number // nil if there are no children
	number Number    // its own
	parent Number    // None for the root
	pos    uint32    // index in the parent's kids
	epoch  uint32
}

// State returns the part of n that changes by transactions. It can be modified.
func (n *Node) State() *State { return &n.state }

// Path returns the full path; "/" for the root.
func (n *Node) Path() string { return n.state.Path() }

// Data returns the data, which is immutable; nil for null.
func (n *Node) Data() []byte { return n.state.Data() }

// Kind returns the kind of the znode.
func (n *Node) Kind() Kind { return n.state.Kind() }

// Owner returns the owner as ZooKeeper stores it.
func (n *Node) Owner() int64 { return n.state.Owner() }

// Name returns the last component of the path; "" for the root.
func (n *Node) Name() string {
	path := n.Path()
	return path[strings.LastIndexByte(path, '/')+1:]
}

// Number returns the number of n.
func (n *Node) Number() Number { return n.number }

// Epoch returns the number that SetEpoch has stored last.
func (n *Node) Epoch() uint32 { return n.epoch }

// SetEpoch stores a number with the node, which has no meaning here.
func (n *Node) SetEpoch(epoch uint32) { n.epoch = epoch }

// IsVacant reports whether the slot at n is vacant.
func (n *Node) IsVacant() bool { return n.state.first == nil }

// Children returns the numbers of n's children.
func (n *Node) Children() []Number {
	if n.kids == nil {
		return nil
	}
	return *n.kids
}

// NumChildren returns the number of direct children.
func (n *Node) NumChildren() int { return len(n.Children()) }

// AddChild appends n to p's children.
func (p *Node) AddChild(n *Node) {
	if p.kids == nil {
		p.kids = new([]Number)
	}
	n.parent, n.pos = p.number, uint32(len(*p.kids))
	*p.kids = append(*p.kids, n.number)
}

// ReserveChildren reserves capacity for count children in total.
func (n *Node) ReserveChildren(count int) {
	list := make([]Number, n.NumChildren(), max(count, n.NumChildren()))
	copy(list, n.Children())
	n.kids = &list
}

// removeChild removes n from p's children. The last child moves to n's position.
func (x *nodes) removeChild(p, n *Node) {
	kids := *p.kids
	last := len(kids) - 1
	kids[n.pos] = kids[last]
	x.At(kids[n.pos]).pos = n.pos
	kids = kids[:last]
	switch {
	case last == 0:
		p.kids = nil
		return
	case last*4 < cap(kids):
		kids = append(make([]Number, 0, last*2), kids...)
	}
	*p.kids = kids
}

// reinsertChild undoes removeChild.
func (x *nodes) reinsertChild(p, n *Node) {
	pos := n.pos
	p.AddChild(n)
	kids := *p.kids
	last := uint32(len(kids) - 1)
	kids[pos], kids[last] = n.number, kids[pos]
	x.At(kids[last]).pos, n.pos = last, pos
}
