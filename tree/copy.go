package tree

// Copy is what a tree held at one time, to be brought back any number of times.
// It is immutable and may be shared.
//
// Nodes have the numbers they had, so that a tree is made of it with a handful of
// allocations and without hashing a path.
type Copy struct {
	nodes   nodes    // without lists and children
	root    number   // of the nodes
	acls    []uint32 // number of the list of each node, in the order of nodes.all
	lists   []*aclEntry
	counts  []uint32 // of the children of each node
	kids    []number // the children, parent after parent
	index   index    // its shards are parts of slots
	slots   []slot
	totals  totals
	longest int32
	aside   []number // the nodes that stand in an index by kind or meaning
}

// Copy returns what the tree holds now. The caller holds the lock, for reading
// at least. It takes as long as a walk over all nodes.
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

// copyIndex notes which node stands in which slot.
func (c *Copy) copyIndex(t *Tree) {
	c.index = index{seed: t.index.seed, n: t.index.n, shards: make([]shard, len(t.index.shards))}
	for i := range t.index.shards {
		s := &t.index.shards[i]
		c.slots = append(c.slots, s.slots...)
		c.index.shards[i] = shard{slots: s.slots, n: s.n}
	}
	c.index.layOut(c.slots, c.index.shards)
}

// layOut makes parts of slots the slots of the shards, as many as the shards of
// like have.
func (x *index) layOut(slots []slot, like []shard) {
	for i := range like {
		size := len(like[i].slots)
		x.shards[i] = shard{slots: slots[:size:size], n: like[i].n}
		slots = slots[size:]
	}
}

// recalled is the memory that a Recall has filled, for the next one of the same
// Copy: to fill it again takes a tenth of the time that new memory takes.
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

// Recall replaces the content of the tree by what a Copy holds, and leaves the
// newest zxid where it is: zxids go on rising. Snapshots of the old content that
// are not written yet fail. Nothing fires watches. The caller holds the lock for
// writing; from here on no Node may be used that was got before.
func (t *Tree) Recall(c *Copy) {
	for len(t.snaps) > 0 {
		t.snaps[0].drop(errReplaced)
	}
	t.result, t.undo, t.aclBuf = Result{}, journal{}, nil // they keep old texts alive
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
