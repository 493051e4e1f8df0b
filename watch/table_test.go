package watch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// log is a Sink that records events.
type log struct {
	name string
	got  []string
}

func (l *log) Notify(typ proto.EventType, path string, zxid int64) {
	l.got = append(l.got, fmt.Sprintf("%d %s %d", typ, path, zxid))
}

// take returns the events since the last call.
func (l *log) take() string {
	s := strings.Join(l.got, ", ")
	l.got = nil
	return s
}

const (
	created  = proto.EventNodeCreated
	deleted  = proto.EventNodeDeleted
	changed  = proto.EventNodeDataChanged
	children = proto.EventNodeChildrenChanged
)

func TestFire(t *testing.T) {
	t.Parallel()
	type add struct {
		path string
		kind Kind
	}
	tests := []struct {
		name  string
		adds  []add
		fire  proto.EventType
		path  string
		first string // delivered the first time
		again string // delivered the second time
	}{
		{"data created", []add{{"/a", Data}}, created, "/a", "1 /a 7", ""},
		{"data changed", []add{{"/a", Data}}, changed, "/a", "3 /a 7", ""},
		{"data deleted", []add{{"/a", Data}}, deleted, "/a", "2 /a 7", ""},
		{"data ignores children", []add{{"/a", Data}}, children, "/a", "", ""},
		{"child ignores data", []add{{"/a", Child}}, changed, "/a", "", ""},
		{"child ignores creation", []add{{"/a", Child}}, created, "/a", "", ""},
		{"child changed", []add{{"/a", Child}}, children, "/a", "4 /a 7", ""},
		{"child deleted", []add{{"/a", Child}}, deleted, "/a", "2 /a 7", ""},
		{"both deleted once", []add{{"/a", Child}, {"/a", Data}}, deleted, "/a", "2 /a 7", ""},
		{"set twice fires once", []add{{"/a", Data}, {"/a", Data}}, changed, "/a", "3 /a 7", ""},
		{"persistent stays", []add{{"/a", Persistent}}, changed, "/a", "3 /a 7", "3 /a 7"},
		{"persistent survives deletion", []add{{"/a", Persistent}}, deleted, "/a", "2 /a 7", "2 /a 7"},
		{"persistent sees children", []add{{"/a", Persistent}}, children, "/a", "4 /a 7", "4 /a 7"},
		{"persistent is not recursive", []add{{"/a", Persistent}}, changed, "/a/b", "", ""},
		{"recursive at itself", []add{{"/a", Recursive}}, changed, "/a", "3 /a 7", "3 /a 7"},
		{"recursive below", []add{{"/a", Recursive}}, created, "/a/b/c", "1 /a/b/c 7", "1 /a/b/c 7"},
		{"recursive is no prefix", []add{{"/a", Recursive}}, created, "/ab", "", ""},
		{"recursive sees no lists", []add{{"/a", Recursive}}, children, "/a", "", ""},
		{"recursive at the root", []add{{"/", Recursive}}, deleted, "/x/y", "2 /x/y 7", "2 /x/y 7"},
		{"recursive root itself", []add{{"/", Recursive}}, changed, "/", "3 / 7", "3 / 7"},
		{"two ancestors, once", []add{{"/", Recursive}, {"/a", Recursive}}, changed, "/a/b", "3 /a/b 7", "3 /a/b 7"},
		{"one-shot and recursive, once", []add{{"/a", Data}, {"/a", Recursive}}, changed, "/a", "3 /a 7", "3 /a 7"},
		{"persistent and child", []add{{"/a", Persistent}, {"/a", Child}}, children, "/a", "4 /a 7", "4 /a 7"},
		{"another path", []add{{"/b", Data}}, changed, "/a", "", ""},
		{"a path without slash", []add{{"a", Data}, {"/", Recursive}}, changed, "a", "3 a 7", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tab, l := NewTable(math.MaxInt64), &log{}
			w := tab.NewWatcher(l)
			for _, a := range tt.adds {
				tab.Add(w, a.path, a.kind)
			}
			for i, want := range []string{tt.first, tt.again} {
				n := tab.Fire(tt.fire, tt.path, 7, nil)
				if got := l.take(); got != want {
					t.Errorf("time %d: got %q, want %q", i+1, got, want)
				}
				if (n == 1) != (want != "") {
					t.Errorf("time %d: Fire = %d", i+1, n)
				}
			}
		})
	}
}

func TestFilterUsesUpOneShots(t *testing.T) {
	t.Parallel()
	tab, l := NewTable(math.MaxInt64), &log{}
	w := tab.NewWatcher(l)
	tab.Add(w, "/a", Data)
	tab.Add(w, "/a", Child)
	refuse := func(*Watcher) bool { return false }
	if n := tab.Fire(changed, "/a", 1, refuse); n != 0 || l.take() != "" {
		t.Fatal("a refused event was delivered")
	}
	tab.Fire(changed, "/a", 2, nil)
	if got := l.take(); got != "" {
		t.Fatalf("the data watch outlived a refused event: %q", got)
	}
	tab.Fire(children, "/a", 3, nil)
	if got := l.take(); got != "4 /a 3" {
		t.Fatalf("the child watch: %q", got)
	}
}

func TestRemoveAndHas(t *testing.T) {
	t.Parallel()
	all := []proto.WatcherType{proto.WatcherChildren, proto.WatcherData, proto.WatcherAny, proto.WatcherPersistent, proto.WatcherPersistentRecursive}
	matches := map[Kind][]proto.WatcherType{
		Data:       {proto.WatcherData, proto.WatcherAny},
		Child:      {proto.WatcherChildren, proto.WatcherAny},
		Persistent: {proto.WatcherPersistent, proto.WatcherAny},
		Recursive:  {proto.WatcherPersistentRecursive, proto.WatcherAny},
	}
	for kind, types := range matches {
		for _, typ := range append(all, 0, 6) {
			tab := NewTable(math.MaxInt64)
			w, other := tab.NewWatcher(&log{}), tab.NewWatcher(&log{})
			tab.Add(w, "/a", kind)
			want := slices.Contains(types, typ)
			if tab.Has(w, "/a", typ) != want || tab.Has(other, "/a", typ) || tab.Has(w, "/b", typ) {
				t.Errorf("Has of kind %d for type %d is not %v, or sees other watchers or paths", kind, typ, want)
			}
			if tab.Remove(other, "/a", typ) || tab.Remove(w, "/a", typ) != want {
				t.Errorf("Remove of kind %d for type %d is not %v", kind, typ, want)
			}
			if tab.Has(w, "/a", proto.WatcherAny) == want {
				t.Errorf("after Remove of kind %d for type %d", kind, typ)
			}
		}
	}
}

func TestRemoveLeavesOtherKinds(t *testing.T) {
	t.Parallel()
	tab, l := NewTable(math.MaxInt64), &log{}
	w := tab.NewWatcher(l)
	for _, k := range []Kind{Data, Child, Persistent, Recursive} {
		tab.Add(w, "/a", k)
	}
	if !tab.Remove(w, "/a", proto.WatcherPersistent) || !tab.Remove(w, "/a", proto.WatcherData) {
		t.Fatal("nothing to remove")
	}
	tab.Fire(changed, "/a", 1, nil) // recursive
	tab.Fire(children, "/a", 2, nil)
	tab.Fire(children, "/a", 3, nil) // the child watch is used up
	if got := l.take(); got != "3 /a 1, 4 /a 2" {
		t.Fatal(got)
	}
}

func TestCounts(t *testing.T) {
	t.Parallel()
	tab := NewTable(math.MaxInt64)
	l1, l2 := &log{name: "1"}, &log{name: "2"}
	a, b := tab.NewWatcher(l1), tab.NewWatcher(l2)
	tab.Add(a, "/x", Data)
	tab.Add(a, "/x", Child)
	tab.Add(a, "/y", Persistent)
	tab.Add(b, "/y", Recursive)
	tab.Add(b, "/z", Child)
	want := Counts{Data: 3, Child: 3, Conns: 2, Paths: 2}
	if got := tab.Counts(); got != want {
		t.Errorf("Counts = %+v, want %+v", got, want)
	}
	if got := tab.Size(); got.Total() != 6 {
		t.Errorf("Size().Total() = %d, want 6", got.Total())
	}
	if got := fmt.Sprint(tab.ByWatcher()[a], tab.ByWatcher()[b]); got != "[/x /y] [/y]" {
		t.Errorf("ByWatcher: %s", got)
	}
	if got := tab.ByPath(); len(got) != 2 || len(got["/y"]) != 2 || got["/x"][0].Sink() != Sink(l1) {
		t.Errorf("ByPath: %v", got)
	}
	tab.Drop(a)
	tab.Drop(b)
	if got := tab.Counts(); got != (Counts{}) || len(tab.entries) != 0 {
		t.Errorf("after Drop: %+v, %d entries", got, len(tab.entries))
	}
}

// model is the simplest possible table: a list of watches.
type model []modelWatch

type modelWatch struct {
	w    int
	path string
	kind Kind
}

// fire returns the watchers that are notified and removes the one-shot watches that
// match.
func (m *model) fire(typ proto.EventType, path string) map[int]bool {
	hit := map[int]bool{}
	var left model
	for _, x := range *m {
		same := x.path == path
		below := same || x.path == "/" || strings.HasPrefix(path, x.path+"/")
		met := false
		switch x.kind {
		case Data:
			met = same && typ != children
		case Child:
			met = same && (typ == children || typ == deleted)
		case Persistent:
			met = same
		case Recursive:
			met = below && typ != children
		}
		if met {
			hit[x.w] = true
		}
		if !met || x.kind == Persistent || x.kind == Recursive {
			left = append(left, x)
		}
	}
	*m = left
	return hit
}

func TestModel(t *testing.T) {
	t.Parallel()
	paths := []string{"/", "/a", "/a/b", "/a/b/c", "/ab", "/c"}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		tab := NewTable(math.MaxInt64)
		var m model
		logs := make([]*log, 4)
		ws := make([]*Watcher, len(logs))
		for i := range logs {
			logs[i] = &log{}
			ws[i] = tab.NewWatcher(logs[i])
		}
		for step := range 200 {
			who, path := rnd.IntN(len(ws)), paths[rnd.IntN(len(paths))]
			x := modelWatch{who, path, Kind(rnd.IntN(4))}
			switch rnd.IntN(10) {
			case 0:
				tab.Drop(ws[who])
				m = slices.DeleteFunc(m, func(y modelWatch) bool { return y.w == who })
			case 1:
				typ := []proto.WatcherType{proto.WatcherData, proto.WatcherChildren, proto.WatcherPersistent, proto.WatcherPersistentRecursive}[x.kind]
				was := slices.Contains(m, x)
				if got := tab.Remove(ws[who], path, typ); got != was {
					t.Fatalf("seed %d step %d: Remove = %v", seed, step, got)
				}
				m = slices.DeleteFunc(m, func(y modelWatch) bool { return x == y })
			case 2, 3, 4, 5:
				tab.Add(ws[who], path, x.kind)
				if !slices.Contains(m, x) {
					m = append(m, x)
				}
			default:
				typ := proto.EventType(rnd.IntN(4) + 1)
				hit := m.fire(typ, path)
				n := tab.Fire(typ, path, int64(step), nil)
				for i, l := range logs {
					want := ""
					if hit[i] {
						want = fmt.Sprintf("%d %s %d", typ, path, step)
					}
					if got := l.take(); got != want {
						t.Fatalf("seed %d step %d: watcher %d got %q, want %q", seed, step, i, got, want)
					}
				}
				if n != len(hit) {
					t.Fatalf("seed %d step %d: Fire = %d, want %d", seed, step, n, len(hit))
				}
			}
			checkIndexes(t, tab, ws)
		}
	}
}

// checkIndexes checks that the two indexes and the counters agree.
func checkIndexes(t *testing.T, tab *Table, ws []*Watcher) {
	t.Helper()
	var byPath, byWatcher, recursives, data, child int
	for path, e := range tab.entries {
		if len(e.regs) == 0 || e.path != path {
			t.Fatalf("entry %q of %q has %d registrations", e.path, path, len(e.regs))
		}
		for i, g := range e.regs {
			if g.at != i || g.e != e || g.w.regs[e] != g || g.kinds == 0 {
				t.Fatalf("registration %d at %q is linked wrongly", i, path)
			}
			byPath++
			recursives += has(g.kinds, 1<<Recursive)
			data += has(g.kinds, dataList)
			child += has(g.kinds, childList)
		}
	}
	for _, w := range ws {
		byWatcher += len(w.regs)
	}
	if byPath != byWatcher || recursives != tab.recursives || data != tab.dataRegs || child != tab.childRegs {
		t.Fatalf("indexes %d and %d, counters %d/%d %d/%d %d/%d", byPath, byWatcher, recursives, tab.recursives, data, tab.dataRegs, child, tab.childRegs)
	}
}

func BenchmarkFireUnwatched(b *testing.B) {
	tab := NewTable(math.MaxInt64)
	w := tab.NewWatcher(&log{})
	for i := range 1000 {
		tab.Add(w, fmt.Sprintf("/x/%d", i), Data)
	}
	b.ReportAllocs()
	for b.Loop() {
		tab.Fire(changed, "/some/other/path", 1, nil)
	}
}

func BenchmarkAddFire(b *testing.B) {
	tab := NewTable(math.MaxInt64)
	w := tab.NewWatcher(discard{})
	b.ReportAllocs()
	for b.Loop() {
		tab.Add(w, "/some/path", Data)
		tab.Fire(changed, "/some/path", 1, nil)
	}
}

// BenchmarkWatchersOfOneNode adds watches to one znode and fires them all. The cost per
// watch should not depend on the number of watches.
func BenchmarkWatchersOfOneNode(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tab := NewTable(math.MaxInt64)
			watchers := make([]*Watcher, n)
			for i := range watchers {
				watchers[i] = tab.NewWatcher(discard{})
			}
			for b.Loop() {
				for _, w := range watchers {
					tab.Add(w, "/some/path", Data)
				}
				tab.Fire(changed, "/some/path", 1, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/watch")
		})
	}
}

// BenchmarkAmongManyWatches adds and fires one watch in a table with many others, a
// thousand per connection.
func BenchmarkAmongManyWatches(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			tab := NewTable(math.MaxInt64)
			for i := range n / 1000 {
				w := tab.NewWatcher(discard{})
				for j := range 1000 {
					tab.Add(w, fmt.Sprintf("/elsewhere/%d/%d", i, j), Data)
				}
			}
			w := tab.NewWatcher(discard{})
			b.ReportAllocs()
			for b.Loop() {
				tab.Add(w, "/some/path", Data)
				tab.Fire(changed, "/some/path", 1, nil)
			}
		})
	}
}

type discard struct{}

func (discard) Notify(proto.EventType, string, int64) {}
