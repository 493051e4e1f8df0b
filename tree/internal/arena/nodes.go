package arena

import "math"

const (
	blockBits = 9
	blockSize = 1 << blockBits // 48 KiB: six pages of Go's allocator, without waste
)

// nodes is the memory of a tree's nodes: blocks of slots that are reused.
//
// Nodes and the index refer to nodes by number instead of by pointer. A number needs half
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
	vacant Number // the slot that was vacated last; its parent is the one vacated before
	used   uint16 // slots that were ever used
	live   uint16 // nodes
	open   int32  // the block's index in nodes.open; −1: the block is full
}

// At returns the node with number n, which must not be None.
func (x *nodes) At(n Number) *Node { return &x.blocks[n>>blockBits][n&(blockSize-1)] }

// Living returns the node that has the number n now, or nil.
func (x *nodes) Living(n Number) *Node {
	if at := int(n >> blockBits); at >= len(x.blocks) || x.blocks[at] == nil {
		return nil
	}
	if node := x.At(n); node.state.first != nil {
		return node
	}
	return nil
}

// Parent returns n's parent; nil for the root.
func (x *nodes) Parent(n *Node) *Node {
	if n.parent == None {
		return nil
	}
	return x.At(n.parent)
}

// take allocates an empty node.
func (x *nodes) take() *Node {
	if len(x.open) == 0 {
		x.grow()
	}
	at := x.open[len(x.open)-1]
	r := &x.rooms[at]
	num := r.vacant
	fresh := num == None
	if fresh {
		num = Number(at)<<blockBits | Number(r.used)
		r.used++
	}
	n := x.At(num)
	if !fresh {
		// We don't read a fresh slot before we write to it: on a new page of memory that
		// would cost a second page fault, which stalls all processors.
		r.vacant, n.parent = n.parent, None
	}
	n.number = num
	r.live++
	if r.vacant == None && r.used == blockSize {
		x.open, r.open = x.open[:len(x.open)-1], -1
	}
	return n
}

// grow adds an empty block. The first slot of block 0 isn't used: it has the number
// None.
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

// Vacate frees the slot of a node that is no longer referenced. It releases a block
// without nodes unless that is the only block with free slots: a client that
// creates and deletes in turn would otherwise allocate a new block each time.
func (x *nodes) Vacate(n *Node) {
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

// End returns a number greater than the number of every node.
func (x *nodes) End() Number { return Number(len(x.blocks)) << blockBits }

// Slots returns the slots from number from to the end of its block, and the first
// number of the next block. Slots without a node have no text.
func (x *nodes) Slots(from Number) ([]Node, Number) {
	at, next := from>>blockBits, (from|(blockSize-1))+1
	used := Number(x.rooms[at].used)
	if first := from & (blockSize - 1); first < used {
		return x.blocks[at][first:used], next
	}
	return nil, next
}

// All calls yield for every node in the order of their numbers, which is mostly the
// order of their creation.
func (x *nodes) All(yield func(*Node) bool) {
	for num := None; num < x.End(); {
		var slots []Node
		slots, num = x.Slots(num)
		for i := range slots {
			if n := &slots[i]; n.state.first != nil && !yield(n) {
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

// Blocks returns the current number of blocks.
func (x *nodes) Blocks() int { return len(x.blocks) - len(x.given) }
