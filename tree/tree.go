package tree

import (
	"sync"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// The znodes that every tree has and that cannot be deleted.
const (
	rootPath   = arena.Root
	procPath   = "/zookeeper"
	quotaPath  = "/zookeeper/quota"
	ConfigPath = "/zookeeper/config" // contains the ensemble's membership
)

// Tree is the tree of znodes. See the package documentation for the locking rules.
type Tree struct {
	mu sync.RWMutex
	editor

	recalled *arena.Recalled // memory of the last Recall; nil if there is none

	result Result
	name   []byte      // scratch: a path with its sequence number
	aclBuf []proto.ACL // scratch: a list being normalised
}

// New returns the tree that a fresh ZooKeeper starts with: the root, /zookeeper
// and its children quota and config, all with zero stats.
func New() *Tree {
	t := new(Tree)
	t.reset()
	t.plantAll()
	return t
}

// Lock locks the tree for writing.
func (t *Tree) Lock() { t.mu.Lock() }

// Unlock releases the lock acquired by Lock.
func (t *Tree) Unlock() { t.mu.Unlock() }

// RLock locks the tree for reading.
func (t *Tree) RLock() { t.mu.RLock() }

// RUnlock releases the lock acquired by RLock.
func (t *Tree) RUnlock() { t.mu.RUnlock() }

// LastZxid returns the zxid of the newest transaction.
func (t *Tree) LastZxid() int64 { return t.zxid }

// Advance records the zxid of a transaction that changes no znode.
func (t *Tree) Advance(zxid int64) { t.zxid = zxid }

// Get returns the node with that path, or nil if there is none. The empty path is
// the root, as in ZooKeeper.
func (t *Tree) Get(path string) *Node { return (*Node)(t.get(path)) }

// NodeCount returns the number of nodes as ZooKeeper reports it: it counts the root
// twice, because its table contains the root under "" and "/".
func (t *Tree) NodeCount() int { return t.arena.Len() + 1 }

// DataSize returns the total size of all paths and data in bytes.
func (t *Tree) DataSize() int64 { return t.totals.dataSize }

// LongestData returns the length of the longest data that the tree has contained so far,
// which is an upper bound for all znodes. It needs no lock.
func (t *Tree) LongestData() int { return int(t.longest.Load()) }

// Prefetch brings the znodes of the first PrefetchMax paths into the processor's
// caches, where later look-ups find them. It has no other effect. The caller holds the
// lock, at least for reading.
func (t *Tree) Prefetch(paths []string) { t.arena.Prefetch(paths) }

// PrefetchMax is the maximum number of paths that Prefetch looks up.
const PrefetchMax = arena.PrefetchMax

// Children calls yield for the name of every direct child of n, in no particular
// order.
func (t *Tree) Children(n *Node) func(yield func(name string) bool) {
	return func(yield func(name string) bool) {
		for _, kid := range (*node)(n).Children() {
			if !yield(t.arena.At(kid).Name()) {
				return
			}
		}
	}
}

// AppendChildren appends the names of n's children as a vector of strings.
func (t *Tree) AppendChildren(b []byte, n *Node) []byte {
	kids := (*node)(n).Children()
	b = proto.AppendInt(b, int32(len(kids)))
	for _, kid := range kids {
		b = proto.AppendString(b, t.arena.At(kid).Name())
	}
	return b
}

// CountDescendants returns the number of nodes below n.
func (t *Tree) CountDescendants(n *Node) int {
	if (*node)(n) == t.root {
		return t.arena.Len() - 1
	}
	count, _ := t.usage((*node)(n))
	return count - 1
}
