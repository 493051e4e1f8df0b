package tree

import (
	"github.com/zkgo/zkgo/tree/internal/acl"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Copy is the content of a tree at one time. Recall can restore it any number of
// times. It is immutable and may be shared.
type Copy struct {
	arena   *arena.Copy
	root    arena.Number // of the root node
	acls    []uint32     // index in lists of each node's list
	lists   []*acl.Entry
	totals  totals
	longest int32
	aside   []arena.Number // nodes that are not persistent or have the limits of a quota
}

// Copy returns the current content of the tree. The caller holds the lock, at least for
// reading. Copy is as slow as a walk over all nodes.
func (t *Tree) Copy() *Copy {
	c := &Copy{root: t.root.Number(), totals: t.totals, longest: t.longest.Load()}
	known, lists := make(map[*acl.Entry]uint32), acl.NewTable()
	c.arena = t.arena.Copy(func(n *node) {
		e := n.State().ACL
		list, ok := known[e]
		if !ok {
			list = uint32(len(c.lists))
			known[e] = list
			c.lists = append(c.lists, lists.Copy(e))
		}
		c.acls = append(c.acls, list)
		if _, limits := limitedPath(n.Path()); limits || n.Kind() != arena.Persistent {
			c.aside = append(c.aside, n.Number())
		}
	})
	return c
}

// Recall replaces the content of the tree with the content of c. It keeps the
// newest zxid, so zxids keep rising. Snapshots of the old content that aren't
// written yet fail. Recall fires no watches. The caller holds the lock for writing,
// and must not use a Node that it got before.
func (t *Tree) Recall(c *Copy) {
	r := t.recalled
	t.forget()
	if !r.Of(c.arena) {
		r = arena.NewRecalled(c.arena)
	}
	t.recalled = r
	t.acls = acl.NewTable()
	lists := make([]*acl.Entry, len(c.lists))
	for i, e := range c.lists {
		lists[i] = t.acls.Copy(e)
	}
	t.arena = r.Recall(func(i int, n *node) {
		n.SetEpoch(t.epoch)
		n.State().ACL = lists[c.acls[i]]
	})
	t.root = t.arena.At(c.root)
	t.ephemerals, t.containers, t.quotas = make(map[int64]nodeSet), make(nodeSet), make(map[string]*node)
	for _, num := range c.aside {
		t.enlist(t.arena.At(num))
	}
	t.totals = c.totals
	t.noteLength(c.longest)
}
