package tree

import "github.com/zkgo/zkgo/proto"

// Children calls yield for the name of every direct child, in no particular
// order.
func (n *Node) Children(yield func(name string) bool) {
	if n.kids == nil {
		return
	}
	for _, kid := range *n.kids {
		if !yield(kid.name()) {
			return
		}
	}
}

// AppendChildren appends the names of n's children as a vector of strings.
func (t *Tree) AppendChildren(b []byte, n *Node) []byte {
	b = proto.AppendInt(b, int32(n.NumChildren()))
	if n.kids == nil {
		return b
	}
	for _, kid := range *n.kids {
		b = proto.AppendString(b, kid.name())
	}
	return b
}

// CountDescendants returns the number of nodes below n.
func (t *Tree) CountDescendants(n *Node) int {
	if n.parent == nil {
		return t.index.n - 1
	}
	count, _ := usage(n)
	return count - 1
}

// usage returns the number of nodes from n downwards and the bytes of their
// data. It keeps a stack of its own: a chain of nodes may be as deep as a path
// is long.
func usage(n *Node) (count int, bytes int64) {
	for stack := []*Node{n}; len(stack) > 0; {
		n := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		count++
		bytes += n.dataLen()
		if n.kids != nil {
			stack = append(stack, *n.kids...)
		}
	}
	return count, bytes
}

// addChild puts n at the end of p's children.
func (p *Node) addChild(n *Node) {
	if p.kids == nil {
		p.kids = new([]*Node)
	}
	n.parent, n.pos = p, uint32(len(*p.kids))
	*p.kids = append(*p.kids, n)
}

// reserveChildren makes room for count children in all.
func (n *Node) reserveChildren(count int) {
	list := make([]*Node, n.NumChildren(), max(count, n.NumChildren()))
	if n.kids != nil {
		copy(list, *n.kids)
	}
	n.kids = &list
}

// removeChild takes n out of p's children: the last child takes its place.
func (p *Node) removeChild(n *Node) {
	kids := *p.kids
	last := len(kids) - 1
	kids[n.pos] = kids[last]
	kids[n.pos].pos = n.pos
	kids[last] = nil
	kids = kids[:last]
	switch {
	case last == 0:
		p.kids = nil
		return
	case last*4 < cap(kids):
		kids = append(make([]*Node, 0, last*2), kids...)
	}
	*p.kids = kids
}

// reinsertChild undoes removeChild.
func (p *Node) reinsertChild(n *Node) {
	pos := n.pos
	p.addChild(n)
	kids := *p.kids
	last := uint32(len(kids) - 1)
	kids[pos], kids[last] = n, kids[pos]
	kids[last].pos, n.pos = last, pos
}
