package tree

// Copy is the content of a tree at one time. Recall can restore it any number of
// times. It is immutable and may be shared.
//
// Nodes keep their numbers, so Recall can rebuild a tree with a handful of allocations and
// without hashing a path.
type Copy struct {
	nodes   nodes    // without lists and children
	root    number   // of the root node
	acls    []uint32 // index in lists of each node's list, in the order of nodes.all
	lists   []*aclEntry
	counts  []uint32 // number of children of each node
	kids    []number // the children, parent after parent
	index   index    // its shards are parts of slots
	slots   []slot
	totals  totals
	longest int32
	aside   []number // nodes that are not persistent or hold the limits of a quota
}

// Copy returns the current content of the tree. The caller holds the lock, at
// least for reading. Copy takes as long as a walk over all nodes.
func (t *Tree) Copy() *Copy {
	c := &Copy{root: t.root.number, totals: t.totals, longest: t.longest.Load()}
	c.nodes.become(t.nodes)
	c.copyIndex(t)
	lists := make(map[*aclEntry]uint32)
	for n := range c.nodes.all {
		list, known := lists[n.acl]
		if !known {
			list = uint32(len(c.lists))
			lists[n.acl] = list
			e := *n.acl
			c.lists = append(c.lists, &e)
		}
		c.acls = append(c.acls, list)
		c.counts = append(c.counts, uint32(n.NumChildren()))
		c.kids = append(c.kids, n.children()...)
		if _, limits := limitedPath(n.path()); limits || n.kind() != persistent {
			c.aside = append(c.aside, n.number)
		}
		n.acl, n.kids = nil, nil
	}
	return c
}

// copyIndex copies the index of t.
func (c *Copy) copyIndex(t *Tree) {
	c.index = index{seed: t.index.seed, n: t.index.n, shards: make([]shard, len(t.index.shards))}
	for i := range t.index.shards {
		s := &t.index.shards[i]
		c.slots = append(c.slots, s.slots...)
		c.index.shards[i] = shard{slots: s.slots, n: s.n}
	}
	c.index.layOut(c.slots, c.index.shards)
}

// layOut divides slots among the shards of x. Each shard gets as many as the same
// shard of like has.
func (x *index) layOut(slots []slot, like []shard) {
	for i := range like {
		size := len(like[i].slots)
		x.shards[i] = shard{slots: slots[:size:size], n: like[i].n}
		slots = slots[size:]
	}
}

// recalled is the memory that a Recall has filled. The next Recall of the same Copy reuses
// it, because that takes a tenth of the time that new memory takes.
type recalled struct {
	c      *Copy
	nodes  nodes
	slots  []slot
	shards []shard
	kids   []number
	heads  [][]number
}

func newRecalled(c *Copy) *recalled {
	return &recalled{c: c, slots: make([]slot, len(c.slots)), shards: make([]shard, len(c.index.shards)),
		kids: make([]number, len(c.kids)), heads: make([][]number, len(c.counts))}
}

// Recall replaces the content of the tree with that of a Copy. We keep the newest zxid, so
// that zxids keep rising. Snapshots of the old content that aren't written yet fail. Recall
// fires no watches. The caller holds the lock for writing, and must not use a Node that it
// got before.
func (t *Tree) Recall(c *Copy) {
	for len(t.snaps) > 0 {
		t.snaps[0].drop(errReplaced)
	}
	t.result, t.undo, t.aclBuf, t.measured = Result{}, journal{}, nil, measured{} // they keep old texts alive
	if t.recalled == nil || t.recalled.c != c {
		t.recalled = newRecalled(c)
	}
	r := t.recalled
	r.nodes.become(&c.nodes)
	t.nodes, t.root = &r.nodes, r.nodes.at(c.root)
	copy(r.kids, c.kids)
	lists, kids, i := t.recallLists(c), r.kids, 0
	for n := range r.nodes.all {
		n.epoch, n.acl = t.epoch, lists[c.acls[i]]
		if count := c.counts[i]; count > 0 {
			r.heads[i], kids = kids[:count:count], kids[count:]
			n.kids = &r.heads[i]
		}
		i++
	}
	copy(r.slots, c.slots)
	t.index = index{seed: c.index.seed, shards: r.shards, n: c.index.n, nodes: t.nodes}
	t.index.layOut(r.slots, c.index.shards)
	t.ephemerals, t.containers, t.quotas = make(map[int64]nodeSet), make(nodeSet), make(map[string]*Node)
	for _, num := range c.aside {
		t.enlist(t.nodes.at(num))
	}
	t.totals = c.totals
	t.noteLength(c.longest)
}

// recallLists rebuilds the table of the lists.
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
