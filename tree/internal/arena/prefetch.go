package arena

// PrefetchMax is the maximum number of paths that Prefetch looks up.
const PrefetchMax = 32

// Prefetch brings the nodes of the first PrefetchMax paths into the processor's caches. It
// has no other effect.
func (x *index) Prefetch(paths []string) { x.prefetch(paths[:min(len(paths), PrefetchMax)]) }

// prefetch does one step for all paths before the next step. Within a step nothing
// depends on data that memory has yet to deliver, not even a branch. It returns a value
// derived from everything it reads, so that the compiler doesn't remove the reads.
//
// A path leads to a slot of the index, the slot to a node, and the node to its text:
// three cache misses in a row. The misses of different paths are independent, so a
// processor that starts them together waits for all only as long as for one.
//
//go:noinline
func (x *index) prefetch(paths []string) (seen byte) {
	var at [PrefetchMax]Place
	for k, path := range paths {
		at[k] = x.Locate(path)
	}
	places := at[:len(paths)]
	for _, p := range places {
		if p.s.n > 0 {
			seen ^= byte(p.s.slots[p.s.home(p.hash)].hash)
		}
	}
	var found [PrefetchMax]*Node
	nodes := found[:len(paths)]
	for k, p := range places {
		if num := p.s.likely(p.hash); num != None {
			nodes[k] = x.nodes.At(num)
		}
	}
	for _, n := range nodes {
		if n != nil {
			seen ^= byte(n.epoch) // the end of the node
			seen ^= n.state.Glance()
		}
	}
	return seen
}
