package tree

import "github.com/zkgo/zkgo/proto"

// PrefetchMax is the maximum number of paths that Prefetch looks up.
const PrefetchMax = 32

// Prefetch brings the znodes of the first PrefetchMax paths into the processor's
// caches, where later look-ups find them. It has no other effect. The caller holds the
// lock, at least for reading.
//
// A path leads to a slot of the index, the slot to a node, and the node to its text, i.e.
// three cache misses in a row. The misses of different paths are independent. If we start
// them together, we wait for all of them about as long as for one.
func (t *Tree) Prefetch(paths []string) {
	t.index.prefetch(paths[:min(len(paths), PrefetchMax)])
}

// prefetch does one step for all paths before the next step. Within a step nothing depends
// on data that memory has yet to deliver, not even a branch. We return a value derived from
// everything we read, so that the compiler doesn't remove the reads.
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
			seen ^= byte(n.epoch) // the end of the node
			seen ^= n.glance()
		}
	}
	return seen
}

// probe is a place in the index to look up.
type probe struct {
	s    *shard
	hash uint32
}

// prefetchTexts prefetches the texts of all images. They are scattered in memory: if we
// read them one after another, we would wait for each.
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
