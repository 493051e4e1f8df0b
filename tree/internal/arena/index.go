package arena

import "hash/maphash"

// shardBits gives 1024 shards: few enough to cost little in an empty tree, enough that
// growing a shard causes no noticeable pause.
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
	node Number
}

func newIndex(of *nodes) index {
	return index{seed: maphash.MakeSeed(), shards: make([]shard, 1<<shardBits), nodes: of}
}

// Place is the position at which the index looks for a path.
type Place struct {
	s    *shard
	hash uint32 // never 0
}

// Locate returns the place of a path, for GetAt and PutAt. It remains valid when the index
// changes.
func (x *index) Locate(path string) Place {
	v := maphash.String(x.seed, path)
	return Place{&x.shards[v>>(64-shardBits)], max(uint32(v), 1)}
}

// Get returns the node with that path, or nil.
func (x *index) Get(path string) *Node { return x.GetAt(x.Locate(path), path) }

// GetAt is Get for a path that is already located.
func (x *index) GetAt(p Place, path string) *Node {
	if at := p.s.find(x.nodes, path, p.hash); at >= 0 {
		return x.nodes.At(p.s.slots[at].node)
	}
	return nil
}

// put adds n. Its path must not be in the index yet.
func (x *index) put(n *Node) { x.PutAt(x.Locate(n.Path()), n) }

// PutAt adds n at the position p of its path. The path must not be in the index yet.
func (x *index) PutAt(p Place, n *Node) {
	s := p.s
	if (s.n+1)*5 > len(s.slots)*4 {
		s.resize(len(s.slots) + len(s.slots)/2 + 4)
	}
	s.put(slot{p.hash, n.number})
	s.n++
	x.n++
}

// remove removes n if it is in the index.
func (x *index) remove(n *Node) {
	p := x.Locate(n.Path())
	s := p.s
	at := s.find(x.nodes, n.Path(), p.hash)
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

// Len returns the number of nodes in the index.
func (x *index) Len() int { return x.n }

// Reserve makes room for n nodes.
func (x *index) Reserve(n int) {
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
		if e := s.slots[i]; e.hash == h && of.At(e.node).Path() == path {
			return i
		}
	}
	return -1
}

// likely returns the number of the first node with that hash, or None. That is nearly
// always the node that find returns.
func (s *shard) likely(h uint32) Number {
	if s.n == 0 {
		return None
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

// pageSlots is the number of slots in a page of memory. A new page costs one page fault
// if the first access is a write. If a read comes first, as in put, it costs two, and the
// second fault stalls all processors.
const pageSlots = 4096 / 8

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
