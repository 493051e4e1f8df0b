package tree

import (
	"fmt"

	"github.com/zkgo/zkgo/tree/internal/acl"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// Check verifies that the tree is consistent and returns the first inconsistency it finds.
// We visit every node, so this is meant for tests.
func (t *Tree) Check() error {
	c := checker{t: t, refs: make(map[*acl.Entry]int), owners: make(map[int64]int)}
	if err := t.arena.Check(c.node); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	if err := c.sums(); err != nil {
		return fmt.Errorf("tree: %w", err)
	}
	return nil
}

// checker computes the expected indexes and totals from all nodes.
type checker struct {
	t          *Tree
	containers int
	limits     int
	refs       map[*acl.Entry]int
	owners     map[int64]int
}

func (c *checker) node(n *node) error {
	size := n.State().DataLen()
	c.refs[n.State().ACL]++
	switch {
	case (n == c.t.root) != (n.Path() == rootPath):
		return fmt.Errorf("has the root's path and isn't the root, or the reverse")
	case n.Epoch() > c.t.epoch:
		return fmt.Errorf("changed in epoch %d of %d", n.Epoch(), c.t.epoch)
	case int(size) > c.t.LongestData():
		return fmt.Errorf("has %d bytes of data, more than LongestData, %d", size, c.t.LongestData())
	case n.Kind() != arena.Persistent && n.Owner() == 0:
		return fmt.Errorf("is of kind %d without an owner", n.Kind())
	case n.Kind() == arena.Ephemeral && n.NumChildren() > 0:
		return fmt.Errorf("is ephemeral and has children")
	}
	return c.kind(n)
}

// kind checks that n is in the indexes for its kind.
func (c *checker) kind(n *node) error {
	switch n.Kind() {
	case arena.Ephemeral:
		c.owners[n.Owner()]++
		if _, ok := c.t.ephemerals[n.Owner()][n]; !ok {
			return fmt.Errorf("is not among the ephemerals of %#x", n.Owner())
		}
	case arena.Container, arena.TTL:
		c.containers++
		if _, ok := c.t.containers[n]; !ok {
			return fmt.Errorf("is not among the containers")
		}
	}
	if prefix, ok := limitedPath(n.Path()); ok {
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
	case stored != owned || owned != t.totals.ephemerals || len(t.ephemerals) != len(c.owners):
		return fmt.Errorf("%d ephemerals, %d indexed, %d counted", owned, stored, t.totals.ephemerals)
	case len(t.containers) != c.containers:
		return fmt.Errorf("%d containers, %d indexed", c.containers, len(t.containers))
	case len(t.quotas) != c.limits:
		return fmt.Errorf("%d limits, %d indexed", c.limits, len(t.quotas))
	case t.undo.active || len(t.undo.steps) > 0 || t.undo.cversions != nil || t.undo.quotas != nil:
		return fmt.Errorf("a multi has not removed all it added")
	}
	for path, s := range t.measured.subtrees {
		if count, bytes := t.usage(t.get(path)); count != s.count || bytes != s.bytes {
			return fmt.Errorf("%d nodes of %d bytes at %q, measured as %d of %d", count, bytes, path, s.count, s.bytes)
		}
	}
	if err := t.acls.Check(c.refs); err != nil {
		return err
	}
	again := store{}
	for n := range t.arena.All {
		again.count(n)
	}
	again.totals.ephemerals = t.totals.ephemerals
	if again.totals != t.totals {
		return fmt.Errorf("totals are %+v instead of %+v", t.totals, again.totals)
	}
	return nil
}
