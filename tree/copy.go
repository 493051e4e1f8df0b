package tree

import "math"

// Copy is what a tree held at one time, to be brought back any number of times.
// It is immutable and may be shared.
//
// It is laid out as Recall needs it: everything that points to something stands
// as a number, so that a tree is made of it with a handful of allocations and
// without hashing a path.
type Copy struct {
	nodes   []Node   // in the order of the index; their pointers to nodes mean nothing
	parents []uint32 // number of the parent; of the root its own
	acls    []uint32 // number of the list
	lists   []*aclEntry
	index   index    // where the nodes stand: without them
	slots   []uint32 // number of the node in each slot of all shards, noNode without
	kids    []uint32 // numbers of the children, parent after parent
	counts  []uint32 // of the children of each node
	totals  totals
	aside   []uint32 // numbers of the nodes that stand in an index by kind or meaning
}

// noNode is the number of an empty slot.
const noNode = math.MaxUint32

// Copy returns what the tree holds now. The caller holds the lock, for reading
// at least. It takes as long as a walk over all nodes.
func (t *Tree) Copy() *Copy {
	c := &Copy{index: index{seed: t.index.seed, n: t.index.n}, totals: t.totals}
	numbers := make(map[*Node]uint32, t.index.n)
	for n := range t.index.all {
		numbers[n] = uint32(len(c.nodes))
		c.nodes = append(c.nodes, *n)
	}
	c.copyIndex(t, numbers)
	lists := make(map[*aclEntry]uint32)
	for n := range t.index.all {
		list, known := lists[n.acl]
		if !known {
			list = uint32(len(c.lists))
			lists[n.acl] = list
			e := *n.acl
			c.lists = append(c.lists, &e)
		}
		c.acls = append(c.acls, list)
		parent := numbers[n]
		if n.parent != nil {
			parent = numbers[n.parent]
		}
		c.parents = append(c.parents, parent)
		c.counts = append(c.counts, uint32(n.NumChildren()))
		if n.kids != nil {
			for _, kid := range *n.kids {
				c.kids = append(c.kids, numbers[kid])
			}
		}
		if _, limits := limitedPath(n.path()); limits || n.kind() != persistent {
			c.aside = append(c.aside, numbers[n])
		}
	}
	return c
}

// copyIndex notes which node stands in which slot.
func (c *Copy) copyIndex(t *Tree, numbers map[*Node]uint32) {
	c.index.shards = make([]shard, len(t.index.shards))
	for i := range t.index.shards {
		s := &t.index.shards[i]
		c.index.shards[i] = shard{hashes: append([]uint32(nil), s.hashes...), n: s.n}
		for _, n := range s.nodes {
			if n == nil {
				c.slots = append(c.slots, noNode)
			} else {
				c.slots = append(c.slots, numbers[n])
			}
		}
	}
}

// recalled is the memory that a Recall has filled, for the next one of the same
// Copy: to fill it again takes a tenth of the time that new memory takes.
type recalled struct {
	c      *Copy
	nodes  []Node
	slots  []*Node
	hashes []uint32
	shards []shard
	kids   []*Node
	heads  [][]*Node
}

func newRecalled(c *Copy) *recalled {
	hashes := 0
	for i := range c.index.shards {
		hashes += len(c.index.shards[i].hashes)
	}
	return &recalled{c: c, nodes: make([]Node, len(c.nodes)), slots: make([]*Node, len(c.slots)), hashes: make([]uint32, hashes),
		shards: make([]shard, len(c.index.shards)), kids: make([]*Node, len(c.kids)), heads: make([][]*Node, len(c.nodes))}
}

// Recall replaces the content of the tree by what a Copy holds, and leaves the
// newest zxid where it is: zxids go on rising. Snapshots of the old content that
// are not written yet fail. Nothing fires watches. The caller holds the lock for
// writing; from here on no Node may be used that was got before.
func (t *Tree) Recall(c *Copy) {
	for len(t.snaps) > 0 {
		t.snaps[0].drop(errReplaced)
	}
	t.result, t.undo, t.aclBuf = Result{}, journal{}, nil // they keep old nodes alive
	if t.recalled == nil || t.recalled.c != c {
		t.recalled = newRecalled(c)
	}
	r := t.recalled
	copy(r.nodes, c.nodes)
	lists, kids := t.recallLists(c), r.kids
	for i, kid := range c.kids {
		kids[i] = &r.nodes[kid]
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		n.epoch, n.acl, n.parent, n.kids = t.epoch, lists[c.acls[i]], &r.nodes[c.parents[i]], nil
		if count := c.counts[i]; count > 0 {
			r.heads[i], kids = kids[:count:count], kids[count:]
			n.kids = &r.heads[i]
		}
		if n.parent == n {
			n.parent, t.root = nil, n
		}
	}
	t.recallIndex(r)
	t.ephemerals, t.containers, t.quotas = make(map[int64]nodeSet), make(nodeSet), make(map[string]*Node)
	for _, i := range c.aside {
		t.enlist(&r.nodes[i])
	}
	t.totals = c.totals
}

// recallLists makes the table of the lists anew.
func (t *Tree) recallLists(c *Copy) []*aclEntry {
	t.acls = newACLTable()
	lists := make([]*aclEntry, len(c.lists))
	for i, e := range c.lists {
		lists[i] = &aclEntry{list: e.list, hash: e.hash}
		t.acls.retain(lists[i])
		lists[i].refs = e.refs
	}
	return lists
}

// recallIndex puts the nodes where they stood.
func (t *Tree) recallIndex(r *recalled) {
	for i, number := range r.c.slots {
		r.slots[i] = nil
		if number != noNode {
			r.slots[i] = &r.nodes[number]
		}
	}
	begin := 0
	for i := range r.shards {
		from := &r.c.index.shards[i]
		end := begin + len(from.hashes)
		r.shards[i] = shard{hashes: r.hashes[begin:end:end], nodes: r.slots[begin:end:end], n: from.n}
		copy(r.shards[i].hashes, from.hashes)
		begin = end
	}
	t.index = index{seed: r.c.index.seed, shards: r.shards, n: r.c.index.n}
}
