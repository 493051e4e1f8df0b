package watch

import (
	"strings"
	"sync"

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
	regs  map[*entry]*reg // nil until the first watch
	fired uint64          // the last event delivered, so that it is delivered once
}

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

// Table is the watches of one server. It is safe for concurrent use.
type Table struct {
	mu         sync.Mutex
	entries    map[string]*entry
	event      uint64 // number of the event being delivered
	recursives int    // watches of kind Recursive: without any, no ancestor is looked up
	dataRegs   int    // registrations in ZooKeeper's data list
	childRegs  int    // registrations in ZooKeeper's child list
}

// NewTable returns an empty table.
func NewTable() *Table { return &Table{entries: make(map[string]*entry)} }

// NewWatcher returns a watcher without watches, which costs the table nothing.
func (t *Table) NewWatcher(s Sink) *Watcher { return &Watcher{sink: s} }

// Add sets a watch. Setting one that is set changes nothing. The path is kept
// as a copy, and need not exist or even be a valid path.
func (t *Table) Add(w *Watcher, path string, k Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[path]
	if e == nil {
		e = &entry{path: strings.Clone(path)}
		t.entries[e.path] = e
	}
	g := w.regs[e]
	if g == nil {
		g = &reg{w: w, e: e, at: len(e.regs)}
		e.regs = append(e.regs, g)
		if w.regs == nil {
			w.regs = make(map[*entry]*reg)
		}
		w.regs[e] = g
	}
	t.set(g, g.kinds|setOf(k))
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
	e := g.e
	last := len(e.regs) - 1
	e.regs[g.at] = e.regs[last]
	e.regs[g.at].at = g.at
	e.regs[last] = nil
	e.regs = e.regs[:last]
	if last == 0 {
		delete(t.entries, e.path)
	}
	delete(g.w.regs, e)
}

// Drop ends all watches of w.
func (t *Table) Drop(w *Watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range w.regs {
		t.set(g, 0)
	}
	w.regs = nil
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
