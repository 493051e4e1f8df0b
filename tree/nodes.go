package tree

import "math"

// number identifies a node in the nodes and tables of its tree. A number belongs to one
// node until we vacate that node.
type number uint32

// none is no node's number.
const none number = 0

const (
	blockBits = 9
	blockSize = 1 << blockBits // 48 KiB: six pages of Go's allocator, without waste
)

// nodes is the memory of a tree's nodes: blocks of slots that are reused.
//
// Nodes and the index refer to nodes by number instead of by pointer. A number takes half
// the space, and, more importantly, the garbage collector doesn't follow it: it scans the
// blocks from one end to the other and visits each node once. If we used pointers, the
// collector would have to find the object for every pointer to a child, to a parent and in
// the index. A node never moves.
type nodes struct {
	blocks []*[blockSize]Node // by number / blockSize; nil: released
	rooms  []room             // the free space of each block
	open   []uint32           // the blocks with free slots; the next node goes into the last one
	given  []uint32           // the blocks that were released
}

// room is the free space of a block.
type room struct {
	vacant number // the slot that was vacated last; its parent is the one vacated before
	used   uint16 // slots that were ever used
	live   uint16 // nodes
	open   int32  // the block's index in nodes.open; −1: the block is full
}

// at returns the node with number n, which must not be none.
func (x *nodes) at(n number) *Node { return &x.blocks[n>>blockBits][n&(blockSize-1)] }

// living returns the node that has the number n now, or nil.
func (x *nodes) living(n number) *Node {
	if at := int(n >> blockBits); at >= len(x.blocks) || x.blocks[at] == nil {
		return nil
	}
	if node := x.at(n); node.first != nil {
		return node
	}
	return nil
}

// parent returns n's parent; nil for the root.
func (x *nodes) parent(n *Node) *Node {
	if n.parent == none {
		return nil
	}
	return x.at(n.parent)
}

// take returns an empty node with a number.
func (x *nodes) take() *Node {
	if len(x.open) == 0 {
		x.grow()
	}
	at := x.open[len(x.open)-1]
	r := &x.rooms[at]
	num := r.vacant
	fresh := num == none
	if fresh {
		num = number(at)<<blockBits | number(r.used)
		r.used++
	}
	n := x.at(num)
	if !fresh {
		// We don't read a fresh slot before we write to it: on a new page of memory that
		// would cost a second page fault, which stalls all processors.
		r.vacant, n.parent = n.parent, none
	}
	n.number = num
	r.live++
	if r.vacant == none && r.used == blockSize {
		x.open, r.open = x.open[:len(x.open)-1], -1
	}
	return n
}

// grow adds an empty block. We don't use the first slot of block 0: its number is none.
func (x *nodes) grow() {
	at := uint32(len(x.blocks))
	if last := len(x.given) - 1; last >= 0 {
		at, x.given = x.given[last], x.given[:last]
	} else {
		if at == math.MaxUint32>>blockBits { // end must be a number too
			panic("tree: more znodes than there are numbers")
		}
		x.blocks, x.rooms = append(x.blocks, nil), append(x.rooms, room{})
	}
	x.blocks[at] = new([blockSize]Node)
	x.rooms[at] = room{open: int32(len(x.open))}
	if at == 0 {
		x.rooms[at].used = 1
	}
	x.open = append(x.open, at)
}

// vacate frees the slot of a node that nothing refers to any more. We release a block
// without nodes unless it is the only block with free slots: otherwise a client that
// alternates between create and delete would allocate a new block each time.
func (x *nodes) vacate(n *Node) {
	num := n.number
	at := uint32(num >> blockBits)
	r := &x.rooms[at]
	*n = Node{parent: r.vacant}
	r.vacant = num
	r.live--
	if r.open < 0 {
		r.open = int32(len(x.open))
		x.open = append(x.open, at)
	}
	if r.live == 0 && len(x.open) > 1 {
		x.giveBack(at)
	}
}

// giveBack releases a block without nodes.
func (x *nodes) giveBack(at uint32) {
	r := &x.rooms[at]
	last := len(x.open) - 1
	moved := x.open[last]
	x.open[r.open], x.rooms[moved].open = moved, r.open
	x.open = x.open[:last]
	x.blocks[at], *r = nil, room{}
	x.given = append(x.given, at)
}

// end returns a number greater than that of every node.
func (x *nodes) end() number { return number(len(x.blocks)) << blockBits }

// slots returns the slots from number from to the end of its block, and the first
// number of the next block. Slots without a node have no text.
func (x *nodes) slots(from number) ([]Node, number) {
	at, next := from>>blockBits, (from|(blockSize-1))+1
	used := number(x.rooms[at].used)
	if first := from & (blockSize - 1); first < used {
		return x.blocks[at][first:used], next
	}
	return nil, next
}

// all calls yield for every node in the order of their numbers, which is mostly the
// order of their creation.
func (x *nodes) all(yield func(*Node) bool) {
	for num := none; num < x.end(); {
		var slots []Node
		slots, num = x.slots(num)
		for i := range slots {
			if n := &slots[i]; n.first != nil && !yield(n) {
				return
			}
		}
	}
}

// become makes x a copy of o, reusing the memory of x.
func (x *nodes) become(o *nodes) {
	for at, block := range o.blocks {
		if at == len(x.blocks) {
			x.blocks, x.rooms = append(x.blocks, nil), append(x.rooms, room{})
		}
		switch {
		case block == nil:
			x.blocks[at] = nil
			continue
		case x.blocks[at] == nil:
			x.blocks[at] = new([blockSize]Node)
		}
		slots := x.blocks[at][:max(x.rooms[at].used, o.rooms[at].used)]
		clear(slots[copy(slots, block[:o.rooms[at].used]):])
	}
	clear(x.blocks[len(o.blocks):])
	x.blocks = x.blocks[:len(o.blocks)]
	x.rooms = append(x.rooms[:0], o.rooms...)
	x.open, x.given = append(x.open[:0], o.open...), append(x.given[:0], o.given...)
}
