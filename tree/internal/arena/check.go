package arena

import (
	"fmt"

	"github.com/zkgo/zkgo/proto"
)

// Check verifies that the slots, the index and the links between nodes are consistent, and
// calls each for every node. It returns the first error. It is meant for tests.
func (a *Arena) Check(each func(*Node) error) error {
	count, links := 0, 0
	for n := range a.All {
		count++
		links += n.NumChildren()
		err := a.checkNode(n)
		if err == nil {
			err = each(n)
		}
		if err != nil {
			return fmt.Errorf("node %q: %w", n.Path(), err)
		}
	}
	if count != a.Len() || links != count-1 {
		return fmt.Errorf("%d nodes and %d links, the index has %d nodes", count, links, a.Len())
	}
	return a.check()
}

func (a *Arena) checkNode(n *Node) error {
	switch {
	case a.Get(n.Path()) != n:
		return fmt.Errorf("is not found under its path")
	case (n.parent == None) != (n.Path() == Root):
		return fmt.Errorf("has the root's path and a parent, or neither")
	case a.At(n.number) != n:
		return fmt.Errorf("is not where its number %d says", n.number)
	case n.state.CRC() != TextCRC(n.Path(), n.Data()):
		return fmt.Errorf("caches the checksum %08x instead of %08x", n.state.CRC(), TextCRC(n.Path(), n.Data()))
	}
	p := a.Parent(n)
	if p == nil {
		return nil
	}
	switch {
	case a.Get(p.Path()) != p:
		return fmt.Errorf("has a parent that is not in the tree")
	case p.Path() != proto.Parent(n.Path()):
		return fmt.Errorf("has the parent %q", p.Path())
	case int(n.pos) >= p.NumChildren() || p.Children()[n.pos] != n.number:
		return fmt.Errorf("is not at its position %d among its parent's children", n.pos)
	case n.Name() != proto.Base(n.Path()):
		return fmt.Errorf("has the name %q", n.Name())
	}
	return nil
}

// check verifies that every slot that was ever used contains a node or is in its block's
// list of vacant slots, and that the bookkeeping of the blocks is correct.
func (x *nodes) check() error {
	room := 0
	for at, block := range x.blocks {
		if block == nil {
			continue
		}
		if err := x.checkBlock(uint32(at)); err != nil {
			return fmt.Errorf("block %d of the nodes: %w", at, err)
		}
		if x.rooms[at].open >= 0 {
			room++
		}
	}
	if there := len(x.blocks) - len(x.given); room != len(x.open) || there < room || len(x.rooms) != len(x.blocks) {
		return fmt.Errorf("%d blocks of nodes, %d with room; counted %d, %d with room", len(x.rooms), room, there, len(x.open))
	}
	return nil
}

func (x *nodes) checkBlock(at uint32) error {
	r := x.rooms[at]
	used, live, vacant := int(r.used), 0, 0
	for i := range x.blocks[at] {
		n := &x.blocks[at][i]
		switch {
		case n.state.first != nil:
			live++
		case n.state != State{} || n.kids != nil:
			return fmt.Errorf("the slot %d is neither a node nor empty: %+v", i, n)
		}
		if i >= used && *n != (Node{}) {
			return fmt.Errorf("the slot %d of %d was used: %+v", i, used, n)
		}
	}
	for num := r.vacant; num != None && vacant < blockSize; num = x.At(num).parent {
		if vacant++; uint32(num>>blockBits) != at || x.At(num).state.first != nil {
			return fmt.Errorf("the slot %d is not vacant", num)
		}
	}
	if at == 0 {
		used-- // the slot of the number None
	}
	room := vacant > 0 || r.used < blockSize
	switch {
	case live != int(r.live) || live+vacant != used:
		return fmt.Errorf("%d nodes and %d vacant slots, counted %+v", live, vacant, r)
	case room != (r.open >= 0) || room && x.open[r.open] != at:
		return fmt.Errorf("with %d vacant slots of %d it is at position %d of the blocks with room: %v", vacant, r.used, r.open, x.open)
	}
	return nil
}
