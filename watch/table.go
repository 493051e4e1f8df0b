package watch

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/proto"
)

// Kind is a kind of watch. A watcher may have all kinds at once on one path.
type Kind uint8

// The kinds of watch. An exists watch is a Data watch.
const (
	Data       Kind = iota // one-shot: created, deleted, data changed
	Child                  // one-shot: deleted, children changed
	Persistent             // both; stays
	Recursive              // created, deleted, data changed at the path or below it; stays
)

// kinds is a set of Kind.
type kinds uint8

func setOf(ks ...Kind) (s kinds) {
	for _, k := range ks {
		s |= 1 << k
	}
	return s
}

// The watches that an event matches at its own path, and the watches that it uses up.
const (
	oneShot    = kinds(1<<Data | 1<<Child)
	dataList   = kinds(1<<Data | 1<<Persistent | 1<<Recursive)
	childList  = kinds(1<<Child | 1<<Persistent)
	everything = dataList | childList
)

// Sink receives a watcher's events.
type Sink interface {
	// Notify is called with the table locked: it must not block or call the
	// table.
	Notify(typ proto.EventType, path string, zxid int64)
}

// Watcher is the set of watches of one connection in a Table.
type Watcher struct {
	sink  Sink
	held  atomic.Int64
	regs  map[*entry]*reg // nil until the first watch
	most  int             // the maximum length of regs since the map was made
	fired uint64          // the last event delivered, to deliver each event once
}

// Held returns the approximate size of w's watches in bytes.
func (w *Watcher) Held() int64 { return w.held.Load() }

// Sink returns the Sink that was passed to NewWatcher.
func (w *Watcher) Sink() Sink { return w.sink }

// entry is a watched path.
type entry struct {
	path string
	regs []*reg
}

// reg is the registration of one watcher at one path.
type reg struct {
	w     *Watcher
	e     *entry
	at    int // index in e.regs
	kinds kinds
}

// regSize is the approximate size in bytes of a reg, including its share of the maps but
// not the path.
const regSize = 192

// size returns the size of g in bytes. A path with several watchers counts for each.
func (g *reg) size() int64 { return regSize + int64(len(g.e.path)) }

// Table contains the watches of one server. It is safe for concurrent use.
type Table struct {
	limit int64 // bytes per watcher
	held  atomic.Int64

	mu         sync.Mutex
	entries    map[string]*entry
	most       int    // the maximum length of entries since the map was made
	event      uint64 // number of the event being delivered
	recursives int    // watches of kind Recursive: without any, no ancestor is looked up
	dataRegs   int    // registrations in ZooKeeper's data list
	childRegs  int    // registrations in ZooKeeper's child list
}

// NewTable returns an empty table that limits the watches of each watcher to about limit
// bytes.
func NewTable(limit int64) *Table { return &Table{limit: limit, entries: make(map[string]*entry)} }

// Held returns the approximate size of all watches in bytes.
func (t *Table) Held() int64 { return t.held.Load() }

// NewWatcher returns a watcher without watches. It costs nothing until the first watch.
func (t *Table) NewWatcher(s Sink) *Watcher { return &Watcher{sink: s} }

// Add sets a watch. Setting the same watch again changes nothing. Add copies path,
// which need not exist or even be valid. It reports false, and changes nothing, if
// w's watches would exceed the limit.
func (t *Table) Add(w *Watcher, path string, k Kind) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[path]
	if e != nil {
		if g := w.regs[e]; g != nil {
			t.set(g, g.kinds|setOf(k))
			return true
		}
	}
	if w.held.Load()+regSize+int64(len(path)) > t.limit {
		return false
	}
	if e == nil {
		e = &entry{path: strings.Clone(path)}
		t.entries[e.path] = e
		t.most = max(t.most, len(t.entries))
	}
	g := &reg{w: w, e: e, at: len(e.regs)}
	e.regs = append(e.regs, g)
	if w.regs == nil {
		w.regs = make(map[*entry]*reg)
	}
	w.regs[e] = g
	w.most = max(w.most, len(w.regs))
	w.held.Add(g.size())
	t.held.Add(g.size())
	t.set(g, setOf(k))
	return true
}

// set changes the kinds of g and updates the counters. It unlinks g from both
// indexes if no kind is left.
func (t *Table) set(g *reg, to kinds) {
	t.recursives += has(to, 1<<Recursive) - has(g.kinds, 1<<Recursive)
	t.dataRegs += has(to, dataList) - has(g.kinds, dataList)
	t.childRegs += has(to, childList) - has(g.kinds, childList)
	g.kinds = to
	if to == 0 {
		t.unlink(g)
	}
}

// has returns 1 if s has a member of want, else 0.
func has(s, want kinds) int {
	if s&want != 0 {
		return 1
	}
	return 0
}

// unlink removes g from both indexes.
func (t *Table) unlink(g *reg) {
	e, w := g.e, g.w
	w.held.Add(-g.size())
	t.held.Add(-g.size())
	last := len(e.regs) - 1
	e.regs[g.at] = e.regs[last]
	e.regs[g.at].at = g.at
	e.regs[last] = nil
	e.regs = e.regs[:last]
	if last == 0 {
		delete(t.entries, e.path)
		t.entries, t.most = shrunk(t.entries, t.most)
	}
	delete(w.regs, e)
	w.regs, w.most = shrunk(w.regs, w.most)
}

// shrunk returns m, or a copy if m has become small: a Go map never shrinks, so we copy it.
// most was its maximum length.
func shrunk[K comparable, V any](m map[K]V, most int) (map[K]V, int) {
	if most < keptRoom || len(m) > most/8 {
		return m, most
	}
	small := make(map[K]V, len(m))
	maps.Copy(small, m)
	return small, len(m)
}

// keptRoom is the length below which shrinking a map isn't worthwhile.
const keptRoom = 1 << 12

// Drop ends all watches of w.
func (t *Table) Drop(w *Watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := w.regs
	w.regs, w.most = nil, 0 // so that unlink doesn't remove each entry
	for _, g := range all {
		t.set(g, 0)
	}
}

// selected returns the kinds that a watcher type selects in checkWatches and
// removeWatches, by the rules of ZooKeeper 3.9: children and data select only the
// one-shot watches.
func selected(typ proto.WatcherType) kinds {
	switch typ {
	case proto.WatcherChildren:
		return setOf(Child)
	case proto.WatcherData:
		return setOf(Data)
	case proto.WatcherAny:
		return everything
	case proto.WatcherPersistent:
		return setOf(Persistent)
	case proto.WatcherPersistentRecursive:
		return setOf(Recursive)
	}
	return 0
}

// Has reports whether w has a watch of the given type at path.
func (t *Table) Has(w *Watcher, path string, typ proto.WatcherType) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.reg(w, path)
	return g != nil && g.kinds&selected(typ) != 0
}

// Remove ends the watches of w that have the given type at path. It reports
// whether there were any.
func (t *Table) Remove(w *Watcher, path string, typ proto.WatcherType) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.reg(w, path)
	if g == nil || g.kinds&selected(typ) == 0 {
		return false
	}
	t.set(g, g.kinds&^selected(typ))
	return true
}

// reg returns w's registration at path, or nil.
func (t *Table) reg(w *Watcher, path string) *reg {
	e := t.entries[path]
	if e == nil {
		return nil
	}
	return w.regs[e]
}
