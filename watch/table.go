package watch

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zkgo/zkgo/proto"
)

// Kind is a kind of watch. On one path a watcher may have all of them at once.
type Kind uint8

// The kinds of watch. An exists watch is a Data watch.
const (
	Data       Kind = iota // one-shot: created, deleted, data changed
	Child                  // one-shot: deleted, children changed
	Persistent             // both, and stays
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

// Which watches an event meets at its own path, and which it uses up.
const (
	oneShot    = kinds(1<<Data | 1<<Child)
	dataList   = kinds(1<<Data | 1<<Persistent | 1<<Recursive)
	childList  = kinds(1<<Child | 1<<Persistent)
	everything = dataList | childList
)

// Sink receives a watcher's events.
type Sink interface {
	// Notify is called with the table locked: it must neither block nor call
	// the table.
	Notify(typ proto.EventType, path string, zxid int64)
}

// Watcher is one connection's side of a Table.
type Watcher struct {
	sink  Sink
	held  atomic.Int64
	regs  map[*entry]*reg // nil until the first watch
	most  int             // the greatest length of regs since it was made
	fired uint64          // the last event delivered, so that it is delivered once
}

// Held returns about how many bytes the watches of w take.
func (w *Watcher) Held() int64 { return w.held.Load() }

// Sink returns what NewWatcher was given.
func (w *Watcher) Sink() Sink { return w.sink }

// entry is a watched path.
type entry struct {
	path string
	regs []*reg
}

// reg is what one watcher watches at one path.
type reg struct {
	w     *Watcher
	e     *entry
	at    int // index in e.regs
	kinds kinds
}

// regSize is about how many bytes the watches of one watcher at one path take, besides the
// path, with their share of the maps.
const regSize = 192

// size is what g takes. A path that several watch counts for each of them.
func (g *reg) size() int64 { return regSize + int64(len(g.e.path)) }

// Table is the watches of one server. It is safe for concurrent use.
type Table struct {
	limit int64 // of the bytes of a watcher
	held  atomic.Int64

	mu         sync.Mutex
	entries    map[string]*entry
	most       int    // the greatest length of entries since it was made
	event      uint64 // number of the event being delivered
	recursives int    // watches of kind Recursive: without any, no ancestor is looked up
	dataRegs   int    // registrations in ZooKeeper's data list
	childRegs  int    // registrations in ZooKeeper's child list
}

// NewTable returns an empty table, in which the watches of one watcher take no more than
// about limit bytes.
func NewTable(limit int64) *Table { return &Table{limit: limit, entries: make(map[string]*entry)} }

// Held returns about how many bytes all watches take.
func (t *Table) Held() int64 { return t.held.Load() }

// NewWatcher returns a watcher without watches, which costs the table nothing.
func (t *Table) NewWatcher(s Sink) *Watcher { return &Watcher{sink: s} }

// Add sets a watch. Setting one that is set changes nothing. The path is kept
// as a copy, and need not exist or even be a valid path. It reports false, and
// changes nothing, if w's watches would take more than the limit.
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

// set gives g another set of kinds, keeps the counters, and unlinks it from
// both indexes when nothing is left.
func (t *Table) set(g *reg, to kinds) {
	t.recursives += has(to, 1<<Recursive) - has(g.kinds, 1<<Recursive)
	t.dataRegs += has(to, dataList) - has(g.kinds, dataList)
	t.childRegs += has(to, childList) - has(g.kinds, childList)
	g.kinds = to
	if to == 0 {
		t.unlink(g)
	}
}

// has returns 1 when s has a member of want.
func has(s, want kinds) int {
	if s&want != 0 {
		return 1
	}
	return 0
}

// unlink takes g out of both indexes.
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

// shrunk returns m, or a copy if m has become small: a map keeps the room that it had when
// it was largest, which was most.
func shrunk[K comparable, V any](m map[K]V, most int) (map[K]V, int) {
	if most < keptRoom || len(m) > most/8 {
		return m, most
	}
	small := make(map[K]V, len(m))
	maps.Copy(small, m)
	return small, len(m)
}

// keptRoom is the length up to which the room of a map is not worth a thought.
const keptRoom = 1 << 12

// Drop ends all watches of w.
func (t *Table) Drop(w *Watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := w.regs
	w.regs, w.most = nil, 0 // nothing has to be taken out of it one by one
	for _, g := range all {
		t.set(g, 0)
	}
}

// selected returns the kinds that a watcher type of checkWatches and
// removeWatches means, by the rules of ZooKeeper 3.9: children and data mean
// the one-shot watches only.
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

// reg returns what w watches at path, nil for nothing.
func (t *Table) reg(w *Watcher, path string) *reg {
	e := t.entries[path]
	if e == nil {
		return nil
	}
	return w.regs[e]
}
