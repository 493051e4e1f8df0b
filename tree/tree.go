package tree

import (
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/proto"
)

// The znodes that every tree has and that cannot be deleted.
const (
	rootPath   = "/"
	procPath   = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	ConfigPath = "/zookeeper/config" // holds the ensemble's membership
)

// Tree is the tree of znodes. See the package documentation for the locking rules.
type Tree struct {
	mu   sync.RWMutex
	zxid int64

	nodes      *nodes
	index      index
	root       *Node
	acls       aclTable
	ephemerals map[int64]nodeSet // by owning session; no entry is empty
	containers nodeSet           // containers and nodes with a time to live
	quotas     map[string]*Node  // limits node by the path it limits, "" for the root's
	totals     totals
	measured   measured
	longest    atomic.Int32 // see LongestData

	epoch uint32      // number of snapshots taken
	snaps []*Snapshot // those that still need images
	undo  journal     // of the multi that is running

	recalled *recalled // memory of the last Recall; nil if there is none

	result    Result
	name      []byte      // scratch: a path with its sequence number
	statsName []byte      // scratch: the path of a stats node
	aclBuf    []proto.ACL // scratch: a list being normalised
	statBuf   [statBlock]byte
}

// nodeSet is a set of nodes.
type nodeSet map[*Node]struct{}

// totals are the sums over all nodes. A failed multi restores them as a whole.
type totals struct {
	digest     uint64 // ZooKeeper's tree digest
	full       uint64 // sum of the nodes' parts of FullDigest
	dataSize   int64
	ephemerals int
}

// New returns the tree that a fresh ZooKeeper starts with: the root, /zookeeper
// and its children quota and config, all with zero stats.
func New() *Tree {
	t := new(Tree)
	t.reset()
	t.plantAll()
	return t
}

// plantAll adds the initial nodes to an empty tree.
func (t *Tree) plantAll() {
	t.plant(rootPath, 0, openACL)
	t.plant(procPath, 0, openACL)
	t.plant(quotaPath, 0, openACL)
	t.plant(ConfigPath, -1, readACL)
}

// The lists of the initial nodes. We return them from functions, so that no code can change
// a shared variable.
func openACL() []proto.ACL { return proto.OpenACL() }
func readACL() []proto.ACL {
	return []proto.ACL{{Perms: proto.PermRead, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
}

// plant adds one of the initial nodes.
func (t *Tree) plant(path string, aversion int32, acl func() []proto.ACL) {
	n := t.newNode(&state{text: newText(persistent, 0, path, []byte{}), aversion: aversion, acl: t.acls.intern(acl())})
	if path == rootPath {
		t.root = n
		t.attach(nil, n)
	} else {
		t.attach(t.Get(proto.Parent(path)), n)
	}
}

// newNode returns a node with that state, which has no parent and isn't in the index
// yet.
func (t *Tree) newNode(s *state) *Node {
	n := t.nodes.take()
	n.state, n.epoch = *s, t.epoch
	return n
}

// reset removes everything from the tree, including the root.
func (t *Tree) reset() {
	t.nodes = new(nodes)
	t.index = newIndex(t.nodes)
	t.root = nil
	t.acls = newACLTable()
	t.ephemerals = make(map[int64]nodeSet)
	t.containers = make(nodeSet)
	t.quotas = make(map[string]*Node)
	t.totals, t.measured = totals{}, measured{}
	t.zxid = 0
}

// Lock locks the tree for writing.
func (t *Tree) Lock() { t.mu.Lock() }

// Unlock releases the lock that Lock took.
func (t *Tree) Unlock() { t.mu.Unlock() }

// RLock locks the tree for reading.
func (t *Tree) RLock() { t.mu.RLock() }

// RUnlock releases the lock that RLock took.
func (t *Tree) RUnlock() { t.mu.RUnlock() }

// LastZxid returns the zxid of the newest transaction.
func (t *Tree) LastZxid() int64 { return t.zxid }

// Advance records the zxid of a transaction that changes no znode.
func (t *Tree) Advance(zxid int64) { t.zxid = zxid }

// Get returns the node with that path, or nil if there is none. The empty path is
// the root, as in ZooKeeper.
func (t *Tree) Get(path string) *Node {
	if path == "" {
		return t.root
	}
	return t.index.get(path)
}

// NodeCount returns the number of nodes as ZooKeeper reports it: it counts the
// root twice, because its table holds the root under "" and "/".
func (t *Tree) NodeCount() int { return t.index.n + 1 }

// DataSize returns the total size of all paths and data in bytes.
func (t *Tree) DataSize() int64 { return t.totals.dataSize }

// LongestData returns the length of the longest data that the tree has held, so no
// znode's data is longer. It needs no lock.
func (t *Tree) LongestData() int { return int(t.longest.Load()) }

// noteLength raises LongestData to n if it is lower.
func (t *Tree) noteLength(n int32) {
	if n > t.longest.Load() {
		t.longest.Store(n)
	}
}

// attach adds a node to its parent, nil for the root, and to every index and total.
func (t *Tree) attach(parent, n *Node) {
	t.index.put(n)
	if parent != nil {
		parent.addChild(n)
	}
	t.enlist(n)
}

// detach removes a node without children from its parent and from every index and
// total. The node keeps its number until it is vacated.
func (t *Tree) detach(n *Node) {
	t.index.remove(n)
	t.nodes.removeChild(t.nodes.parent(n), n)
	t.discharge(n)
	t.acls.release(n.acl)
}

// reattach undoes detach, including the order of the parent's children.
func (t *Tree) reattach(n *Node) {
	t.acls.retain(n.acl)
	t.index.put(n)
	t.nodes.reinsertChild(t.nodes.parent(n), n)
	t.enlist(n)
}

// enlist adds n to the totals and to the indexes of ephemerals, containers and
// quotas.
func (t *Tree) enlist(n *Node) {
	t.count(n)
	switch n.kind() {
	case ephemeral:
		set := t.ephemerals[n.owner()]
		if set == nil {
			set = make(nodeSet)
			t.ephemerals[n.owner()] = set
		}
		set[n] = struct{}{}
		t.totals.ephemerals++
	case container, ttl:
		t.containers[n] = struct{}{}
	}
	if prefix, ok := limitedPath(n.path()); ok {
		t.quotas[prefix] = n
	}
}

// discharge undoes enlist.
func (t *Tree) discharge(n *Node) {
	t.uncount(n)
	switch n.kind() {
	case ephemeral:
		set := t.ephemerals[n.owner()]
		delete(set, n)
		if len(set) == 0 {
			delete(t.ephemerals, n.owner())
		}
		t.totals.ephemerals--
	case container, ttl:
		delete(t.containers, n)
	}
	if prefix, ok := limitedPath(n.path()); ok {
		delete(t.quotas, prefix)
	}
}
