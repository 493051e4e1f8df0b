package tree

import "github.com/zkgo/zkgo/proto"

// Children calls yield for the name of every direct child of n, in no particular
// order.
func (t *Tree) Children(n *Node) func(yield func(name string) bool) {
	return func(yield func(name string) bool) {
		for _, kid := range n.children() {
			if !yield(t.nodes.at(kid).name()) {
				return
			}
		}
	}
}

// AppendChildren appends the names of n's children as a vector of strings.
func (t *Tree) AppendChildren(b []byte, n *Node) []byte {
	kids := n.children()
	b = proto.AppendInt(b, int32(len(kids)))
	for _, kid := range kids {
		b = proto.AppendString(b, t.nodes.at(kid).name())
	}
	return b
}

// CountDescendants returns the number of nodes below n.
func (t *Tree) CountDescendants(n *Node) int {
	if n == t.root {
		return t.index.n - 1
	}
	count, _ := t.usage(n)
	return count - 1
}

// usage returns the number of nodes in n's subtree and the bytes of their data. We keep our
// own stack instead of recursing, because a chain of nodes can be as deep as a path is
// long.
func (t *Tree) usage(n *Node) (count int, bytes int64) {
	for stack := []number{n.number}; len(stack) > 0; {
		n := t.nodes.at(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		count++
		bytes += n.dataLen()
		stack = append(stack, n.children()...)
	}
	return count, bytes
}

// children returns the numbers of n's children.
func (n *Node) children() []number {
	if n.kids == nil {
		return nil
	}
	return *n.kids
}

// addChild appends n to p's children.
func (p *Node) addChild(n *Node) {
	if p.kids == nil {
		p.kids = new([]number)
	}
	n.parent, n.pos = p.number, uint32(len(*p.kids))
	*p.kids = append(*p.kids, n.number)
}

// reserveChildren reserves capacity for count children in total.
func (n *Node) reserveChildren(count int) {
	list := make([]number, n.NumChildren(), max(count, n.NumChildren()))
	copy(list, n.children())
	n.kids = &list
}

// removeChild removes n from p's children. The last child takes n's position.
func (x *nodes) removeChild(p, n *Node) {
	kids := *p.kids
	last := len(kids) - 1
	kids[n.pos] = kids[last]
	x.at(kids[n.pos]).pos = n.pos
	kids = kids[:last]
	switch {
	case last == 0:
		p.kids = nil
		return
	case last*4 < cap(kids):
		kids = append(make([]number, 0, last*2), kids...)
	}
	*p.kids = kids
}

// reinsertChild undoes removeChild.
func (x *nodes) reinsertChild(p, n *Node) {
	pos := n.pos
	p.addChild(n)
	kids := *p.kids
	last := uint32(len(kids) - 1)
	kids[pos], kids[last] = n.number, kids[pos]
	x.at(kids[last]).pos, n.pos = last, pos
}
