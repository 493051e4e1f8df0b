package tree

import (
	"hash/maphash"
	"runtime"
	"unsafe"
)

// shardBits gives 1024 shards: few enough to cost little in an empty tree, enough
// that growing or walking one of them holds nobody up.
const shardBits = 10

// index finds nodes by path. It is an open hash table in shards that grow one
// by one: a single table of millions would stop the world when it doubles, and
// Go's map needs twice the memory because it stores the paths again. A snapshot
// walks it shard by shard; what a shard's number says about the walk's progress
// is why it is not a plain map.
//
// It keeps no node alive: see newSlots. Whoever puts a node in must know that the
// tree leads to it, from the root down, or hold it until it does.
type index struct {
	seed   maphash.Seed
	shards []shard
	n      int
}

// shard is a table with linear probing. hashes[i] is 0 where nodes[i] is nil.
type shard struct {
	hashes []uint32
	nodes  []*Node
	n      int
}

func newIndex() index {
	return index{seed: maphash.MakeSeed(), shards: make([]shard, 1<<shardBits)}
}

// locate returns the number of path's shard and its hash within, never 0.
func (x *index) locate(path string) (int, uint32) {
	v := maphash.String(x.seed, path)
	return int(v >> (64 - shardBits)), max(uint32(v), 1)
}

// get returns the node with that path or nil.
func (x *index) get(path string) *Node {
	i, h := x.locate(path)
	return x.getAt(i, h, path)
}

// getAt is get for a path that is already located.
func (x *index) getAt(i int, h uint32, path string) *Node {
	s := &x.shards[i]
	if at := s.find(path, h); at >= 0 {
		return s.nodes[at]
	}
	return nil
}

// put adds n, whose path must not be there.
func (x *index) put(n *Node) {
	i, h := x.locate(n.path())
	x.putAt(i, h, n)
}

// putAt is put for a path that is already located.
func (x *index) putAt(i int, h uint32, n *Node) {
	s := &x.shards[i]
	if (s.n+1)*5 > len(s.nodes)*4 {
		s.resize(len(s.nodes) + len(s.nodes)/2 + 4)
	}
	s.put(n, h)
	s.n++
	x.n++
}

// remove takes n out.
func (x *index) remove(n *Node) {
	defer runtime.KeepAlive(n) // until no slot holds it: perhaps nobody else does any more
	i, h := x.locate(n.path())
	s := &x.shards[i]
	at := s.find(n.path(), h)
	if at < 0 {
		return
	}
	s.vacate(at)
	s.n--
	x.n--
	if s.n*5 < len(s.nodes) && len(s.nodes) > 8 {
		s.resize(len(s.nodes) / 2)
	}
}

// reserve makes room for n nodes.
func (x *index) reserve(n int) {
	size := n/len(x.shards)*4/3 + 4
	for i := range x.shards {
		if s := &x.shards[i]; n >= len(x.shards) && len(s.nodes) < size {
			s.resize(size)
		}
	}
}

// home returns the slot where a probe for h starts.
func (s *shard) home(h uint32) int { return int(uint64(h) * uint64(len(s.nodes)) >> 32) }

// next returns the slot behind i.
func (s *shard) next(i int) int {
	if i++; i < len(s.nodes) {
		return i
	}
	return 0
}

func (s *shard) find(path string, h uint32) int {
	if s.n == 0 {
		return -1
	}
	for i := s.home(h); s.hashes[i] != 0; i = s.next(i) {
		if s.hashes[i] == h && s.nodes[i].path() == path {
			return i
		}
	}
	return -1
}

func (s *shard) put(n *Node, h uint32) {
	i := s.home(h)
	for s.hashes[i] != 0 {
		i = s.next(i)
	}
	s.hashes[i], s.nodes[i] = h, n
}

// vacate empties slot i and moves up the entries that a probe would no longer
// reach behind the hole.
func (s *shard) vacate(i int) {
	for j := s.next(i); s.hashes[j] != 0; j = s.next(j) {
		home := s.home(s.hashes[j])
		reachable := home > i && home <= j
		if i > j {
			reachable = home > i || home <= j
		}
		if !reachable {
			s.hashes[i], s.nodes[i] = s.hashes[j], s.nodes[j]
			i = j
		}
	}
	s.hashes[i], s.nodes[i] = 0, nil
}

func (s *shard) resize(size int) {
	old := *s
	s.hashes, s.nodes = make([]uint32, size), newSlots(size)
	for i, n := range old.nodes {
		if n != nil {
			s.put(n, old.hashes[i])
		}
	}
}

// newSlots makes slots that the garbage collector does not look into: it finds all
// nodes through their parents' lists, in about the order in which they were made,
// and to come to each again from here, at random, was two fifths of its work.
//
// It never moves anything, so what is stored stays right; and a pointer that is
// read here is like any other, because no node is here that could not be reached
// otherwise when a collection began or has been made since. The slots must be
// written one by one: copy, append and clear ask the collector about such memory.
func newSlots(n int) []*Node {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((**Node)(unsafe.Pointer(unsafe.SliceData(make([]uintptr, n)))), n)
}

// all calls yield for every node in no particular order.
func (x *index) all(yield func(*Node) bool) {
	for i := range x.shards {
		for _, n := range x.shards[i].nodes {
			if n != nil && !yield(n) {
				return
			}
		}
	}
}
