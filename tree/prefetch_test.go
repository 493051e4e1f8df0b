package tree

import (
	"strconv"
	"testing"
)

// TestPrefetch: Prefetch changes nothing, for any paths and any tree.
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
		for n := range paths {
			tree.Prefetch(paths[:n])
		}
		tree.Prefetch(paths)
		if tree.FullDigest() != before {
			t.Errorf("%s: it is another one afterwards", name)
		}
	}
}
