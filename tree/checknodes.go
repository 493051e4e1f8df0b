package tree

import "fmt"

// check verifies that every slot that was ever used holds a node or is in its block's
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
		return fmt.Errorf("%d blocks of nodes, of which %d have room, where %d are there and %d have room", len(x.rooms), room, there, len(x.open))
	}
	return nil
}

func (x *nodes) checkBlock(at uint32) error {
	r := x.rooms[at]
	used, live, vacant := int(r.used), 0, 0
	for i := range x.blocks[at] {
		n := &x.blocks[at][i]
		switch {
		case n.first != nil:
			live++
		case n.state != state{} || n.kids != nil:
			return fmt.Errorf("the slot %d is neither a node nor empty: %+v", i, n)
		}
		if i >= used && *n != (Node{}) {
			return fmt.Errorf("the slot %d of %d was used: %+v", i, used, n)
		}
	}
	for num := r.vacant; num != none && vacant < blockSize; num = x.at(num).parent {
		if vacant++; uint32(num>>blockBits) != at || x.at(num).first != nil {
			return fmt.Errorf("the slot %d is not vacant", num)
		}
	}
	if at == 0 {
		used-- // the slot of the number none
	}
	room := vacant > 0 || r.used < blockSize
	switch {
	case live != int(r.live) || live+vacant != used:
		return fmt.Errorf("%d nodes and %d vacant slots, counted %+v", live, vacant, r)
	case room != (r.open >= 0) || room && x.open[r.open] != at:
		return fmt.Errorf("with %d vacant slots of %d it stands at %d of those with room: %v", vacant, r.used, r.open, x.open)
	}
	return nil
}
