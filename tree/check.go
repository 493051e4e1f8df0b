package tree

import (
	"fmt"

	"github.com/zkgo/zkgo/proto"
)

// Check verifies that the tree is consistent and returns the first inconsistency it finds.
// We visit every node, so this is meant for tests.
func (t *Tree) Check() error {
	c := checker{t: t, refs: make(map[*aclEntry]int), owners: make(map[int64]int)}
	for n := range t.nodes.all {
		if err := c.node(n); err != nil {
			return fmt.Errorf("tree: node %q: %w", n.path(), err)
		}
	}
	if err := c.sums(); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	return nil
}

// checker collects over all nodes what the indexes and totals must contain.
type checker struct {
	t          *Tree
	nodes      int
	links      int
	containers int
	limits     int
	refs       map[*aclEntry]int
	owners     map[int64]int
}

func (c *checker) node(n *Node) error {
	t := c.t
	c.nodes++
	c.links += n.NumChildren()
	c.refs[n.acl]++
	switch {
	case t.Get(n.path()) != n:
		return fmt.Errorf("is not found under its path")
	case (n == t.root) != (n.parent == none) || (n == t.root) != (n.path() == rootPath):
		return fmt.Errorf("is it the root or not")
	case t.nodes.at(n.number) != n:
		return fmt.Errorf("is not where its number %d says", n.number)
	case n.epoch > t.epoch:
		return fmt.Errorf("changed in epoch %d of %d", n.epoch, t.epoch)
	case int(n.size) > t.LongestData():
		return fmt.Errorf("has %d bytes of data, none is said to have more than %d", n.size, t.LongestData())
	case n.crc() != textCRC(n.path(), n.bytes()):
		return fmt.Errorf("caches the checksum %08x instead of %08x", n.crc(), textCRC(n.path(), n.bytes()))
	case n.kind() != persistent && n.owner() == 0:
		return fmt.Errorf("is of kind %d without an owner", n.kind())
	case n.kind() == ephemeral && n.NumChildren() > 0:
		return fmt.Errorf("is ephemeral and has children")
	}
	if p := t.nodes.parent(n); p != nil {
		switch {
		case t.Get(p.path()) != p:
			return fmt.Errorf("has a parent that is not in the tree")
		case p.path() != proto.Parent(n.path()):
			return fmt.Errorf("has the parent %q", p.path())
		case int(n.pos) >= p.NumChildren() || p.children()[n.pos] != n.number:
			return fmt.Errorf("is not at its position %d among its parent's children", n.pos)
		case n.name() != proto.Base(n.path()):
			return fmt.Errorf("has the name %q", n.name())
		}
	}
	return c.kind(n)
}

// kind checks that n is in the indexes where it belongs.
func (c *checker) kind(n *Node) error {
	switch n.kind() {
	case ephemeral:
		c.owners[n.owner()]++
		if _, ok := c.t.ephemerals[n.owner()][n]; !ok {
			return fmt.Errorf("is not among the ephemerals of %#x", n.owner())
		}
	case container, ttl:
		c.containers++
		if _, ok := c.t.containers[n]; !ok {
			return fmt.Errorf("is not among the containers")
		}
	}
	if prefix, ok := limitedPath(n.path()); ok {
		c.limits++
		if c.t.quotas[prefix] != n {
			return fmt.Errorf("does not limit %q", prefix)
		}
	}
	return nil
}

// sums checks the totals, and that the indexes contain nothing else.
func (c *checker) sums() error {
	t := c.t
	stored := 0
	for _, set := range t.ephemerals {
		stored += len(set)
	}
	owned := 0
	for _, n := range c.owners {
		owned += n
	}
	switch {
	case c.nodes != t.index.n || c.links != c.nodes-1:
		return fmt.Errorf("%d nodes and %d links where %d are counted", c.nodes, c.links, t.index.n)
	case stored != owned || owned != t.totals.ephemerals || len(t.ephemerals) != len(c.owners):
		return fmt.Errorf("%d ephemerals, %d indexed, %d counted", owned, stored, t.totals.ephemerals)
	case len(t.containers) != c.containers:
		return fmt.Errorf("%d containers, %d indexed", c.containers, len(t.containers))
	case len(t.quotas) != c.limits:
		return fmt.Errorf("%d limits, %d indexed", c.limits, len(t.quotas))
	case t.undo.active || len(t.undo.steps) > 0 || t.undo.cversions != nil || t.undo.quotas != nil:
		return fmt.Errorf("a multi has left something behind")
	}
	for path, s := range t.measured.subtrees {
		if count, bytes := t.usage(t.Get(path)); count != s.count || bytes != s.bytes {
			return fmt.Errorf("%d nodes of %d bytes at %q, measured as %d of %d", count, bytes, path, s.count, s.bytes)
		}
	}
	if err := t.nodes.check(); err != nil {
		return err
	}
	if err := c.lists(); err != nil {
		return err
	}
	again := Tree{}
	for n := range t.nodes.all {
		again.count(n)
	}
	again.totals.ephemerals = t.totals.ephemerals
	if again.totals != t.totals {
		return fmt.Errorf("totals are %+v instead of %+v", t.totals, again.totals)
	}
	return nil
}

// lists checks the table of access control lists.
func (c *checker) lists() error {
	stored := 0
	for hash, first := range c.t.acls.byHash {
		for e := first; e != nil; e = e.next {
			stored++
			if e.hash != hash || hashACL(e.list) != hash || e.refs != c.refs[e] {
				return fmt.Errorf("access control list %v has %d references instead of %d, hash %#x", e.list, e.refs, c.refs[e], hash)
			}
		}
	}
	if stored != len(c.refs) {
		return fmt.Errorf("%d access control lists in use, %d stored", len(c.refs), stored)
	}
	return nil
}
