package arena

import (
	"math/rand"
	"strconv"
	"testing"
)

// TestIndex compares the index with a map. It also uses a single small shard, so that
// probes collide.
func TestIndex(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewSource(5))
	of := new(nodes)
	x := newIndex(of)
	one := shard{}
	want := map[string]*Node{}
	for range 50_000 {
		path := "/" + strconv.Itoa(g.Intn(2000))
		n := want[path]
		h := uint32(g.Intn(3)) + 1<<uint(len(path)*3)
		if n == nil {
			n = of.take()
			n.state.Text, n.epoch = NewText(Persistent, 0, path, nil), h
			want[path] = n
			x.put(n)
			if (one.n+1)*5 > len(one.slots)*4 {
				one.resize(len(one.slots) + len(one.slots)/2 + 4)
			}
			one.put(slot{n.epoch, n.number})
			one.n++
		} else if g.Intn(3) > 0 {
			delete(want, path)
			x.remove(n)
			x.remove(n) // a second time has no effect
			one.vacate(one.find(of, path, n.epoch))
			one.n--
			of.Vacate(n)
		}
	}
	if x.n != len(want) || one.n != len(want) {
		t.Fatalf("%d and %d nodes instead of %d", x.n, one.n, len(want))
	}
	seen := 0
	for n := range of.All {
		seen++
		if want[n.Path()] != n {
			t.Fatalf("%q is too much", n.Path())
		}
	}
	for path, n := range want {
		if x.Get(path) != n || one.find(of, path, n.epoch) < 0 || one.slots[one.find(of, path, n.epoch)].node != n.number {
			t.Fatalf("%q is not found", path)
		}
	}
	for range of.All {
		seen--
		break
	}
	if seen != len(want)-1 {
		t.Errorf("%d nodes seen", seen+1)
	}
	for _, n := range want {
		x.remove(n)
	}
	for i := range x.shards {
		if len(x.shards[i].slots) > 8 {
			t.Errorf("an empty shard has %d slots", len(x.shards[i].slots))
		}
	}
}
