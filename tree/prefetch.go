package tree

import "github.com/zkgo/zkgo/proto"

// ManyNodes is from how many znodes on they are in no cache, so that also a read, which
// needs little more than the znode, is worth a look ahead.
const ManyNodes = 100_000

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

// prefetch returns something of all that it has seen: for nothing, the compiler would
// leave the seeing out.
//
//go:noinline
func (x *index) prefetch(paths []string) (seen byte) {
	var homes [PrefetchMax]*slot
	for k, path := range paths {
		i, h := x.locate(path)
		if s := &x.shards[i]; s.n > 0 {
			homes[k] = &s.slots[s.home(h)] // nearly always the right one, or next to it
		}
	}
	var nodes [PrefetchMax]*Node
	for k, e := range homes[:len(paths)] {
		if e != nil && e.node != none {
			nodes[k] = x.nodes.at(e.node)
		}
	}
	for _, n := range nodes[:len(paths)] {
		if n != nil {
			seen ^= *n.first
		}
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
