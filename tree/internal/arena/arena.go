package arena

// Arena stores the nodes of a tree, and the index of the attached nodes.
type Arena struct {
	nodes
	index
}

// New returns an empty arena.
func New() *Arena {
	a := new(Arena)
	a.index = newIndex(&a.nodes)
	return a
}

// NewNode returns a node with that state, which has no parent and isn't in the index yet.
func (a *Arena) NewNode(s *State, epoch uint32) *Node {
	n := a.take()
	n.state, n.epoch = *s, epoch
	return n
}

// Attach adds a node to the index and to its parent, nil for the root.
func (a *Arena) Attach(parent, n *Node) {
	a.put(n)
	if parent != nil {
		parent.AddChild(n)
	}
}

// Detach removes a node without children from its parent and from the index. The node
// keeps its number until it is vacated.
func (a *Arena) Detach(n *Node) {
	a.remove(n)
	a.removeChild(a.Parent(n), n)
}

// Reattach undoes Detach, including the order of the parent's children.
func (a *Arena) Reattach(n *Node) {
	a.put(n)
	a.reinsertChild(a.Parent(n), n)
}
