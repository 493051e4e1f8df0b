package tree

import "github.com/zkgo/zkgo/tree/internal/arena"

// censusStep is the number of nodes that a Census visits in one step.
const censusStep = 4096

// Census counts the nodes below a node in steps. Its caller can release the tree's lock
// between two steps: if we counted a million nodes at once, we would block writes for a
// tenth of a second. Unlike ZooKeeper's, a count of several steps isn't atomic. It
// includes each node that exists for the whole time exactly once, and no node that is
// created in the meantime.
//
// The number of a node on the stack may be reused before we visit it. We recognize the new
// node by the zxid of its creation.
type Census struct {
	t     *Tree
	of    *arena.Arena
	zxid  int64 // when the census started
	stack []arena.Number
	count int
}

// Census starts to count the nodes below n. The caller holds the lock.
func (t *Tree) Census(n *Node) *Census {
	c := &Census{t: t, of: t.arena, zxid: t.zxid}
	if (*node)(n) == t.root {
		c.count = t.arena.Len() - 1
		return c
	}
	c.stack = append(c.stack, (*node)(n).Children()...)
	return c
}

// Step visits more nodes and reports whether any are left. The caller holds the lock.
func (c *Census) Step() bool {
	if c.t.arena != c.of {
		c.stack = nil // the whole content of the tree has been replaced
	}
	same := c.t.zxid == c.zxid
	for visited := 0; visited < censusStep && len(c.stack) > 0; visited++ {
		last := len(c.stack) - 1
		n := c.of.Living(c.stack[last])
		c.stack = c.stack[:last]
		if n != nil && (same || n.State().Czxid <= c.zxid) {
			c.count++
			c.stack = append(c.stack, n.Children()...)
		}
	}
	return len(c.stack) > 0
}

// Count returns the number of nodes found so far.
func (c *Census) Count() int { return c.count }
