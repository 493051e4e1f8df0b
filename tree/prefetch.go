package tree

import "github.com/zkgo/zkgo/proto"

// ManyNodes is from how many znodes on they are not in a processor's own caches, so that
// also a read, which needs little more than the znode, is worth a look ahead.
const ManyNodes = 5_000

// PrefetchMax is how many paths Prefetch looks at.
const PrefetchMax = 32

// Prefetch looks for the znodes with those paths, the first PrefetchMax of them, and
// does nothing else: who then asks for one after the other finds them in the
// processor's caches. The tree is locked, for reading at least.
//
// A path leads to a slot of the index, that to a node and that to its text, each in a
// place of its own: three cache misses in a row. Those of several paths have nothing
// to do with each other, so a processor that comes to them together waits for all of
// them as long as for one.
func (t *Tree) Prefetch(paths []string) {
	t.index.prefetch(paths[:min(len(paths), PrefetchMax)])
}

// prefetch does one step for all paths before the next one: within a step nothing
// depends on anything that memory has yet to bring, not even where the program goes on.
// It returns something of all that it has seen: for nothing, the compiler would leave
// the seeing out.
//
//go:noinline
func (x *index) prefetch(paths []string) (seen byte) {
	var at [PrefetchMax]probe
	for k, path := range paths {
		i, h := x.locate(path)
		at[k] = probe{s: &x.shards[i], hash: h}
	}
	probes := at[:len(paths)]
	for _, p := range probes {
		if p.s.n > 0 {
			seen ^= byte(p.s.slots[p.s.home(p.hash)].hash)
		}
	}
	var found [PrefetchMax]*Node
	nodes := found[:len(paths)]
	for k, p := range probes {
		if num := p.s.likely(p.hash); num != none {
			nodes[k] = x.nodes.at(num)
		}
	}
	for _, n := range nodes {
		if n != nil {
			seen ^= byte(n.epoch) // where it ends
			seen ^= n.glance()
		}
	}
	return seen
}

// probe is where the index is looked into.
type probe struct {
	s    *shard
	hash uint32
}

// prefetchTexts looks for the texts of all images: they lie about in memory, and who
// needs one after the other waits for each.
//
//go:noinline
func prefetchTexts(images []image) (seen byte) {
	for i := range images {
		seen ^= images[i].glance()
	}
	return seen
}

// prefetchMulti is Prefetch for the operations of a multi.
func (t *Tree) prefetchMulti(q *proto.MultiRequest) {
	if len(q.Ops) < 2 {
		return
	}
	var room [PrefetchMax]string
	paths := room[:0]
	for i := range q.Ops[:min(len(q.Ops), PrefetchMax)] {
		if path, ok := q.Ops[i].Path(); ok {
			paths = append(paths, path)
		}
	}
	t.Prefetch(paths)
}
