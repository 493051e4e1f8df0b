package watch

import (
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// Fire delivers one event to every watcher with a matching watch, to each watcher once, and
// returns the number of watchers notified. Created and data-changed events match the data
// watches of the path and the recursive watches of the path and its ancestors. Deleted
// events also match the path's child watches. Children-changed events match only the path's
// child watches. allow, unless nil, decides which watchers may see the event. Like
// ZooKeeper, we use up a one-shot watch even if allow refuses the event.
//
// zxid is the transaction's.
func (t *Table) Fire(typ proto.EventType, path string, zxid int64, allow func(*Watcher) bool) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 {
		return 0
	}
	t.event++
	f := firing{t: t, typ: typ, path: path, zxid: zxid, allow: allow}
	f.at(path, meets(typ))
	if typ != proto.EventNodeChildrenChanged && t.recursives > 0 {
		f.above(path)
	}
	return f.notified
}

// meets returns the kinds of watch that an event matches at its own path.
func meets(typ proto.EventType) kinds {
	switch typ {
	case proto.EventNodeCreated, proto.EventNodeDataChanged:
		return dataList
	case proto.EventNodeDeleted:
		return everything
	case proto.EventNodeChildrenChanged:
		return childList
	}
	return 0
}

// firing is one event that is being delivered.
type firing struct {
	t        *Table
	typ      proto.EventType
	path     string
	zxid     int64
	allow    func(*Watcher) bool
	notified int
}

// at delivers to the watches of the given kinds at one path. We iterate backwards, because
// using up a watch moves the last registration into its place.
func (f *firing) at(path string, want kinds) {
	e := f.t.entries[path]
	if e == nil {
		return
	}
	for i := len(e.regs) - 1; i >= 0; i-- {
		g := e.regs[i]
		met := g.kinds & want
		if met == 0 {
			continue
		}
		w := g.w
		if met&oneShot != 0 {
			f.t.set(g, g.kinds&^(met&oneShot))
		}
		f.deliver(w)
	}
}

// above delivers to the recursive watches of path's ancestors, the nearest
// first.
func (f *firing) above(path string) {
	for path != "/" {
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			return
		}
		if path = path[:i]; path == "" {
			path = "/"
		}
		f.at(path, 1<<Recursive)
	}
}

// deliver notifies w unless the event has already reached it or allow refuses it.
func (f *firing) deliver(w *Watcher) {
	if w.fired == f.t.event {
		return
	}
	w.fired = f.t.event
	if f.allow != nil && !f.allow(w) {
		return
	}
	w.sink.Notify(f.typ, f.path, f.zxid)
	f.notified++
}
