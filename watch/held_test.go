package watch

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// Held should return the size of the current watches, for a watcher and for the table,
// whatever was set, fired and removed before. In the end it should be 0.
func TestHeldIsTheSizeOfTheWatches(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	tab := NewTable(math.MaxInt64)
	var ws []*Watcher
	for range 5 {
		ws = append(ws, tab.NewWatcher(&log{}))
	}
	check := func() {
		t.Helper()
		sums, all := make(map[*Watcher]int64), int64(0)
		for path, e := range tab.entries {
			for _, g := range e.regs {
				sums[g.w] += regSize + int64(len(path))
				all += regSize + int64(len(path))
			}
		}
		for i, w := range ws {
			if w.Held() != sums[w] {
				t.Fatalf("watcher %d holds %d, and says %d", i, sums[w], w.Held())
			}
		}
		if tab.Held() != all {
			t.Fatalf("all hold %d, and the table says %d", all, tab.Held())
		}
	}
	for range 5000 {
		w, path := ws[rng.IntN(len(ws))], "/"+strings.Repeat("p", rng.IntN(20))
		switch rng.IntN(8) {
		case 0:
			tab.Remove(w, path, proto.WatcherAny)
		case 1:
			tab.Fire(deleted, path, 1, nil)
		case 2:
			if rng.IntN(20) == 0 {
				tab.Drop(w)
			}
		default:
			tab.Add(w, path, Kind(rng.IntN(4)))
		}
		check()
	}
	for _, w := range ws {
		tab.Drop(w)
	}
	check()
	if tab.Held() != 0 || len(tab.entries) != 0 {
		t.Errorf("%d bytes and %d paths are left", tab.Held(), len(tab.entries))
	}
}

// A watcher at its limit can't watch another path, but it can set another kind on a path
// that it already watches. Once one of its watches is gone, it can watch another path.
func TestAWatcherHasALimit(t *testing.T) {
	t.Parallel()
	tab := NewTable(10 * (regSize + 10))
	w, other := tab.NewWatcher(&log{}), tab.NewWatcher(&log{})
	path := func(i int) string { return "/ppppppp" + strconv.Itoa(10+i) }
	for i := range 10 {
		if !tab.Add(w, path(i), Data) {
			t.Fatalf("watch %d is refused", i)
		}
	}
	if tab.Add(w, "/x", Data) || tab.Add(w, strings.Repeat("x", 1<<20), Child) || tab.Held() != w.Held() || len(tab.entries) != 10 {
		t.Errorf("it has more than its limit: %d bytes, %d paths", w.Held(), len(tab.entries))
	}
	if !tab.Add(w, path(3), Child) || !tab.Add(other, "/x", Data) {
		t.Error("what takes nothing, or is another's, is refused")
	}
	tab.Fire(changed, path(4), 1, nil)
	if !tab.Add(w, path(11), Data) {
		t.Error("there is room again, and a watch is refused")
	}
}

// We should release the memory of the maps after many watches are gone.
func TestRemovedWatchesFreeTheirMemory(t *testing.T) {
	t.Parallel()
	tab := NewTable(math.MaxInt64)
	w, other := tab.NewWatcher(&log{}), tab.NewWatcher(&log{})
	tab.Add(other, "/stays", Persistent)
	for i := range 100_000 {
		tab.Add(w, "/"+strconv.Itoa(i), Data)
	}
	for i := range 100_000 {
		tab.Fire(changed, "/"+strconv.Itoa(i), 1, nil)
	}
	if tab.most > keptRoom || w.most > keptRoom {
		t.Errorf("the table has room for %d paths, the watcher for %d", tab.most, w.most)
	}
	if !tab.Has(other, "/stays", proto.WatcherPersistent) {
		t.Error("a watch was lost")
	}
}
