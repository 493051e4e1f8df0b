package tree

import (
	"strconv"
	"testing"
)

// TestPrefetch: for any number of paths, Prefetch should read the slot, the node and the
// text of each znode, touch no other znode, and change nothing.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	empty := new(Tree)
	empty.reset()
	paths := []string{"", "/", "/dir0", "/nowhere", "/zookeeper/quota", "no path", "/dir1/node101"}
	for i := range PrefetchMax {
		paths = append(paths, "/dir"+strconv.Itoa(i%100)+"/node"+strconv.Itoa(i+100))
	}
	for name, tree := range map[string]*Tree{"nothing": empty, "a new one": New(), "a full one": filled(t, 1000)} {
		before := tree.FullDigest()
		want := byte(0)
		for n, path := range paths[:PrefetchMax] {
			if got := tree.index.prefetch(paths[:n]); got != want {
				t.Fatalf("%s: %d paths: what was read adds up to %#x, want %#x", name, n, got, want)
			}
			want ^= tree.readsOf(path)
		}
		tree.Prefetch(paths) // more than it looks up
		if tree.FullDigest() != before {
			t.Errorf("%s: it is another one afterwards", name)
		}
	}
}

// readsOf returns what prefetching one path has to read: of its slot, and of the znode if
// there is one.
func (t *Tree) readsOf(path string) (seen byte) {
	i, hash := t.index.locate(path)
	if s := &t.index.shards[i]; s.n > 0 {
		seen = byte(s.slots[s.home(hash)].hash)
	}
	if n := t.index.get(path); n != nil {
		seen ^= byte(n.epoch) ^ n.glance()
	}
	return seen
}
