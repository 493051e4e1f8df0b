package tree

import (
	"sync/atomic"

	"github.com/zkgo/zkgo/tree/internal/acl"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// store is the content of a tree: the nodes with their indexes and totals. A node enters
// and leaves it only through attach and detach.
type store struct {
	zxid       int64
	arena      *arena.Arena
	root       *node
	acls       acl.Table
	ephemerals map[int64]nodeSet // by owning session; no entry is empty
	containers nodeSet           // containers and nodes with a time to live
	quotas     map[string]*node  // limits node by the path it limits, "" for the root's
	totals     totals
	measured   measured

	longest   atomic.Int32 // see Tree.LongestData
	statsName []byte       // scratch: the path of a stats node
	statBuf   [statBlock]byte
}

// nodeSet is a set of nodes.
type nodeSet map[*node]struct{}

// totals are the sums over all nodes. A failed multi restores them as a whole.
type totals struct {
	digest     uint64 // ZooKeeper's tree digest
	full       uint64 // sum of the nodes' parts of FullDigest
	dataSize   int64
	ephemerals int
}

// reset removes everything, including the root.
func (t *store) reset() {
	t.arena = arena.New()
	t.root = nil
	t.acls = acl.NewTable()
	t.ephemerals = make(map[int64]nodeSet)
	t.containers = make(nodeSet)
	t.quotas = make(map[string]*node)
	t.totals, t.measured = totals{}, measured{}
	t.zxid = 0
}

// get returns the node with that path, or nil if there is none.
func (t *store) get(path string) *node {
	if path == "" {
		return t.root
	}
	return t.arena.Get(path)
}

// noteLength raises LongestData to n if it is lower.
func (t *store) noteLength(n int32) {
	if n > t.longest.Load() {
		t.longest.Store(n)
	}
}

// attach adds a node to its parent, nil for the root, and to every index and total.
func (t *store) attach(parent, n *node) {
	t.arena.Attach(parent, n)
	t.enlist(n)
}

// detach removes a node without children from its parent and from every index and
// total. The node keeps its number until it is vacated.
func (t *store) detach(n *node) {
	t.arena.Detach(n)
	t.discharge(n)
	t.acls.Release(n.State().ACL)
}

// reattach undoes detach, including the order of the parent's children.
func (t *store) reattach(n *node) {
	t.acls.Retain(n.State().ACL)
	t.arena.Reattach(n)
	t.enlist(n)
}

// enlist adds n to the totals and to the indexes of ephemerals, containers and
// quotas.
func (t *store) enlist(n *node) {
	t.count(n)
	switch n.Kind() {
	case arena.Ephemeral:
		set := t.ephemerals[n.Owner()]
		if set == nil {
			set = make(nodeSet)
			t.ephemerals[n.Owner()] = set
		}
		set[n] = struct{}{}
		t.totals.ephemerals++
	case arena.Container, arena.TTL:
		t.containers[n] = struct{}{}
	}
	if prefix, ok := limitedPath(n.Path()); ok {
		t.quotas[prefix] = n
	}
}

// discharge undoes enlist.
func (t *store) discharge(n *node) {
	t.uncount(n)
	switch n.Kind() {
	case arena.Ephemeral:
		set := t.ephemerals[n.Owner()]
		delete(set, n)
		if len(set) == 0 {
			delete(t.ephemerals, n.Owner())
		}
		t.totals.ephemerals--
	case arena.Container, arena.TTL:
		delete(t.containers, n)
	}
	if prefix, ok := limitedPath(n.Path()); ok {
		delete(t.quotas, prefix)
	}
}

// usage returns the number of nodes in n's subtree and the bytes of their data. It uses
// an explicit stack, because a subtree can be as deep as the longest path.
func (t *store) usage(n *node) (count int, bytes int64) {
	for stack := []arena.Number{n.Number()}; len(stack) > 0; {
		n := t.arena.At(stack[len(stack)-1])
		stack = stack[:len(stack)-1]
		count++
		bytes += n.State().DataLen()
		stack = append(stack, n.Children()...)
	}
	return count, bytes
}
