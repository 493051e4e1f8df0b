package tree

import "math"

// number is what a node is called by the nodes and tables of its tree. While the
// tree is there a number is that of one node only, until the node is vacated.
type number uint32

// none is no node's number.
const none number = 0

const (
	blockBits = 9
	blockSize = 1 << blockBits // 48 KiB: six pages of Go's allocator, with nothing left over
)

// nodes is the memory of the nodes of a tree: blocks of slots that are used again.
//
// Nodes name each other by numbers, and so does the index. Against pointers that is
// half the size and, above all, nothing for the garbage collector: it goes through
// the blocks from one end to the other and comes to each node once, where it had
// to find the object behind every pointer to a child, a parent and in the index.
// A node never moves.
type nodes struct {
	blocks []*[blockSize]Node // by number / blockSize; nil: given back
	rooms  []room             // what is known of each block
	open   []uint32           // the blocks with room; the next node comes into the last one
	given  []uint32           // the blocks that were given back
}

// room says what is free in a block.
type room struct {
	vacant number // the slot that was vacated last; its parent is the one before
	used   uint16 // slots that have ever been used
	live   uint16 // nodes
	open   int32  // where the block stands in nodes.open; −1: it is full or not there
}

// at returns the node with that number, which must not be none.
func (x *nodes) at(n number) *Node { return &x.blocks[n>>blockBits][n&(blockSize-1)] }

// parent returns n's parent; nil for the root.
func (x *nodes) parent(n *Node) *Node {
	if n.parent == none {
		return nil
	}
	return x.at(n.parent)
}

// take returns a node that has nothing but a number.
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
		// Into a fresh slot nobody looks before it is written to: a new page of memory
		// would take two faults, the second of which holds up all processors.
		r.vacant, n.parent = n.parent, none
	}
	n.number = num
	r.live++
	if r.vacant == none && r.used == blockSize {
		x.open, r.open = x.open[:len(x.open)-1], -1
	}
	return n
}

// grow adds an empty block. The first slot of the first is not used: it has the
// number none.
func (x *nodes) grow() {
	at := uint32(len(x.blocks))
	if last := len(x.given) - 1; last >= 0 {
		at, x.given = x.given[last], x.given[:last]
	} else {
		if at == math.MaxUint32>>blockBits { // end is a number too
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

// vacate gives back the slot of a node to which nothing leads any more. A block
// without nodes is given back unless it is the only one with room: who creates and
// deletes in turns would have a new one each time.
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

// giveBack lets go of a block without nodes.
func (x *nodes) giveBack(at uint32) {
	r := &x.rooms[at]
	last := len(x.open) - 1
	moved := x.open[last]
	x.open[r.open], x.rooms[moved].open = moved, r.open
	x.open = x.open[:last]
	x.blocks[at], *r = nil, room{}
	x.given = append(x.given, at)
}

// end is a number behind all that have been given.
func (x *nodes) end() number { return number(len(x.blocks)) << blockBits }

// slots returns the slots from that number to the end of its block, and the first
// number of the next block. Slots without a node have no text.
func (x *nodes) slots(from number) ([]Node, number) {
	at, next := from>>blockBits, (from|(blockSize-1))+1
	used := number(x.rooms[at].used)
	if first := from & (blockSize - 1); first < used {
		return x.blocks[at][first:used], next
	}
	return nil, next
}

// all calls yield for every node in the order of their numbers: mostly that in
// which they were made.
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

// become makes x what o is, in the memory that x has.
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
