package tree

import (
	"hash/maphash"
	"unsafe"
)

// shardBits gives 1024 shards: few enough to cost little in an empty tree, enough
// that growing one of them causes no noticeable pause.
const shardBits = 10

// index finds nodes by path. It is a hash table with open addressing, divided into shards
// that grow one by one. We don't use a single table, because growing a table of millions of
// nodes would cause a long pause. We don't use a Go map, because it needs twice the memory:
// it stores the paths again.
type index struct {
	seed   maphash.Seed
	shards []shard
	n      int
	nodes  *nodes // the nodes that the slots refer to
}

// shard is a table with linear probing.
type shard struct {
	slots []slot
	n     int
}

// slot is an entry. A probe that moves on to the next slot reads nothing else.
// Both fields of an empty slot are 0.
type slot struct {
	hash uint32
	node number
}

func newIndex(of *nodes) index {
	return index{seed: maphash.MakeSeed(), shards: make([]shard, 1<<shardBits), nodes: of}
}

// locate returns the number of path's shard and path's hash in it, which is never 0.
func (x *index) locate(path string) (int, uint32) {
	v := maphash.String(x.seed, path)
	return int(v >> (64 - shardBits)), max(uint32(v), 1)
}

// get returns the node with that path, or nil.
func (x *index) get(path string) *Node {
	i, h := x.locate(path)
	return x.getAt(i, h, path)
}

// getAt is get for a path that is already located.
func (x *index) getAt(i int, h uint32, path string) *Node {
	s := &x.shards[i]
	if at := s.find(x.nodes, path, h); at >= 0 {
		return x.nodes.at(s.slots[at].node)
	}
	return nil
}

// put adds n, whose path must not be in the index.
func (x *index) put(n *Node) {
	i, h := x.locate(n.path())
	x.putAt(i, h, n)
}

// putAt is put for a path that is already located.
func (x *index) putAt(i int, h uint32, n *Node) {
	s := &x.shards[i]
	if (s.n+1)*5 > len(s.slots)*4 {
		s.resize(len(s.slots) + len(s.slots)/2 + 4)
	}
	s.put(slot{h, n.number})
	s.n++
	x.n++
}

// remove removes n if it is in the index.
func (x *index) remove(n *Node) {
	i, h := x.locate(n.path())
	s := &x.shards[i]
	at := s.find(x.nodes, n.path(), h)
	if at < 0 {
		return
	}
	s.vacate(at)
	s.n--
	x.n--
	if s.n*5 < len(s.slots) && len(s.slots) > 8 {
		s.resize(len(s.slots) / 2)
	}
}

// reserve makes room for n nodes.
func (x *index) reserve(n int) {
	size := n/len(x.shards)*4/3 + 4
	for i := range x.shards {
		if s := &x.shards[i]; n >= len(x.shards) && len(s.slots) < size {
			s.resize(size)
		}
	}
}

// home returns the slot where a probe for h starts.
func (s *shard) home(h uint32) int { return int(uint64(h) * uint64(len(s.slots)) >> 32) }

// next returns the slot after i.
func (s *shard) next(i int) int {
	if i++; i < len(s.slots) {
		return i
	}
	return 0
}

// find returns the slot of the node with that path, or −1.
func (s *shard) find(of *nodes, path string, h uint32) int {
	if s.n == 0 {
		return -1
	}
	for i := s.home(h); s.slots[i].hash != 0; i = s.next(i) {
		if e := s.slots[i]; e.hash == h && of.at(e.node).path() == path {
			return i
		}
	}
	return -1
}

// likely returns the number of the first node with that hash, or none. That is nearly
// always the node that find returns.
func (s *shard) likely(h uint32) number {
	if s.n == 0 {
		return none
	}
	i := s.home(h)
	for s.slots[i].hash != h && s.slots[i].hash != 0 {
		i = s.next(i)
	}
	return s.slots[i].node
}

func (s *shard) put(e slot) {
	i := s.home(e.hash)
	for s.slots[i].hash != 0 {
		i = s.next(i)
	}
	s.slots[i] = e
}

// vacate empties slot i and moves up the entries after it that a probe couldn't reach any
// more.
func (s *shard) vacate(i int) {
	for j := s.next(i); s.slots[j].hash != 0; j = s.next(j) {
		home := s.home(s.slots[j].hash)
		reachable := home > i && home <= j
		if i > j {
			reachable = home > i || home <= j
		}
		if !reachable {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = slot{}
}

// pageSlots is the number of slots in a page of memory. We write to a new page before we
// read it. If the first access is a read, as in put, the page costs two page faults instead
// of one, and the second one stalls all processors.
const pageSlots = 4096 / int(unsafe.Sizeof(slot{}))

func (s *shard) resize(size int) {
	old := s.slots
	s.slots = make([]slot, size)
	for i := 0; i < size; i += pageSlots {
		s.slots[i] = slot{} // see pageSlots
	}
	for _, e := range old {
		if e.hash != 0 {
			s.put(e)
		}
	}
}
