package arena

import (
	"strconv"
	"testing"
)

// TestPrefetch: for any number of paths, Prefetch should read the slot, the node and the
// text of each znode, touch no other znode, and change nothing.
func TestPrefetch(t *testing.T) {
	t.Parallel()
	paths := []string{"", "/", "/dir0", "/nowhere", "/zookeeper/quota", "no path", "/dir1/node101"}
	for i := range PrefetchMax {
		paths = append(paths, "/dir"+strconv.Itoa(i%100)+"/node"+strconv.Itoa(i+100))
	}
	for name, nodes := range map[string]int{"nothing": 0, "a few": 4, "a full one": 1000} {
		a := New()
		for i := range nodes {
			path := "/"
			if i > 0 {
				path = paths[i%len(paths)] + "/" + strconv.Itoa(i)
			}
			if i < len(paths) && i > 1 && i%2 == 0 {
				path = paths[i]
			}
			a.PutAt(a.Locate(path), a.NewNode(&State{Text: NewText(Persistent, 0, path, []byte(path))}, uint32(i)))
		}
		want := byte(0)
		for n, path := range paths[:PrefetchMax] {
			if got := a.prefetch(paths[:n]); got != want {
				t.Fatalf("%s: %d paths: what was read adds up to %#x, want %#x", name, n, got, want)
			}
			want ^= a.readsOf(path)
		}
		a.Prefetch(paths) // more than it looks up
		if a.Len() != nodes {
			t.Errorf("%s: it is another one afterwards", name)
		}
	}
}

// readsOf returns what prefetching one path must read: of its slot, and of the znode if
// there is one.
func (a *Arena) readsOf(path string) (seen byte) {
	p := a.Locate(path)
	if p.s.n > 0 {
		seen = byte(p.s.slots[p.s.home(p.hash)].hash)
	}
	if n := a.Get(path); n != nil {
		seen ^= byte(n.epoch) ^ n.state.Glance()
	}
	return seen
}
