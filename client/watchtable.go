package client

import (
	"slices"

	"github.com/zkgo/zkgo/proto"
)

// armed is a set of the watches that a server keeps for one path: it does not
// distinguish data and exist.
type armed uint8

const (
	armedData armed = 1 << iota
	armedChild
	armedPersistent
	armedRecursive
)

// standard are those that an event consumes.
const standard = armedData | armedChild

func (k kind) armed() armed {
	return [...]armed{armedData, armedData, armedChild, armedPersistent, armedRecursive}[k]
}

// watchedPath is what there is to know of one path.
type watchedPath struct {
	watchers [kinds][]*Watch
	server   armed // what the server keeps for this connection
	inFlight int   // requests under way that will arm one
}

// wanted is what the server should keep.
func (p *watchedPath) wanted() (a armed) {
	for k, list := range p.watchers {
		if len(list) > 0 {
			a |= kind(k).armed()
		}
	}
	return a
}

// watchTable is the Client's side of all watches, by path. core.mu guards it.
//
// What the server keeps is brought to what is wanted by sweep, which is called
// whenever either changes: after a removal, and when a request that armed a watch
// for a caller who has gone is answered. Nothing is removed while a request that
// arms one on the same path is under way, since that would lose it.
type watchTable struct {
	core  *core
	paths map[string]*watchedPath
}

// arming notes that a request which sets a watch was sent.
func (t *watchTable) arming(k *call) {
	p := t.paths[k.watcher.path]
	if p == nil {
		p = &watchedPath{}
		t.paths[k.watcher.path] = p
	}
	p.inFlight++
}

// armed takes the answer to such a request.
func (t *watchTable) armed(k *call, l *link) {
	w := k.watcher
	p := t.paths[w.path]
	if p == nil || t.core.link != l {
		// The session was lost while the answer was on its way from the connection to
		// here: all its watches have been ended, and nobody would end this one.
		w.end(ErrSessionExpired)
		return
	}
	p.inFlight--
	switch {
	case k.err != nil:
		w = nil
	case k.op == proto.OpExists && k.code == ErrNoNode:
		w.kind = kindExist
	case k.code != 0:
		w = nil
	}
	if w != nil {
		p.server |= w.kind.armed()
		if k.taken && k.refused == 0 {
			p.watchers[w.kind] = append(p.watchers[w.kind], w)
		}
	}
	t.abandonSweep(t.sweep(k.watcher.path, p))
}

// remove ends a watch. It returns the request that was sent for it, if any.
func (t *watchTable) remove(w *Watch) *call {
	if w.over {
		return nil
	}
	w.end(ErrWatchRemoved)
	p := t.paths[w.path]
	if p == nil {
		return nil
	}
	p.watchers[w.kind] = slices.DeleteFunc(p.watchers[w.kind], func(x *Watch) bool { return x == w })
	return t.sweep(w.path, p)
}

// sweep has the server drop what nobody wants, and forgets the path if that is
// all. It returns the request, whose answer comes to its ready channel.
func (t *watchTable) sweep(path string, p *watchedPath) *call {
	wanted := p.wanted()
	extra := p.server &^ wanted
	if p.inFlight > 0 {
		return nil
	}
	var k *call
	if l := t.core.link; extra != 0 && l != nil {
		for _, r := range removals(extra, wanted) {
			t.abandonSweep(k)
			k = t.core.calls.Get().(*call)
			k.op, k.path, k.num = proto.OpRemoveWatches, path, int32(r.typ)
			l.push(k)
			l.kick()
			p.server &^= r.what
		}
	}
	if wanted == 0 && p.server == 0 {
		delete(t.paths, path)
	}
	return k
}

// removal is one removeWatches, and what the server drops by it.
type removal struct {
	typ  proto.WatcherType
	what armed
}

// removals chooses what removeWatches is asked for. Before ZooKeeper 3.9 the
// types for standard watches damage a persistent one on the same path: then a
// standard watch that nobody wants is left to its event.
func removals(extra, wanted armed) (list []removal) {
	if wanted == 0 {
		return []removal{{proto.WatcherAny, extra}}
	}
	for _, r := range []removal{
		{proto.WatcherPersistent, armedPersistent},
		{proto.WatcherPersistentRecursive, armedRecursive},
		{proto.WatcherData, armedData},
		{proto.WatcherChildren, armedChild},
	} {
		if extra&r.what != 0 && (r.what&standard == 0 || wanted&^standard == 0) {
			list = append(list, r)
		}
	}
	return list
}

// abandonSweep leaves the answer to a removal to the reader.
func (t *watchTable) abandonSweep(k *call) {
	if k != nil {
		k.abandoned = true
	}
}

// fire hands an event to those who wait for it.
func (t *watchTable) fire(typ EventType, path string, zxid int64) {
	e := Event{Type: typ, Path: path, Zxid: zxid}
	if p := t.paths[path]; p != nil {
		var once []kind
		switch typ {
		case EventNodeCreated, EventNodeDataChanged:
			once = []kind{kindData, kindExist}
			p.server &^= armedData
		case EventNodeDeleted:
			once = []kind{kindData, kindExist, kindChild}
			p.server &^= standard
		case EventNodeChildrenChanged:
			once = []kind{kindChild}
			p.server &^= armedChild
		}
		for _, k := range once {
			list := p.watchers[k]
			p.watchers[k] = nil
			for _, w := range list {
				w.deliver(e)
				w.end(nil)
			}
		}
		for _, w := range p.watchers[kindPersistent] {
			w.deliver(e)
		}
		t.abandonSweep(t.sweep(path, p))
	}
	if typ == EventNodeChildrenChanged {
		return
	}
	for at := path; at != ""; at = parentOf(at) {
		if p := t.paths[at]; p != nil {
			for _, w := range p.watchers[kindRecursive] {
				w.deliver(e)
			}
		}
	}
}

// parentOf returns the path above, "" above the root.
func parentOf(path string) string {
	if path == "/" {
		return ""
	}
	return proto.Parent(path)
}

// endAll ends all watches for a reason.
func (t *watchTable) endAll(err error) {
	for _, p := range t.paths {
		for _, list := range p.watchers {
			for _, w := range list {
				w.end(err)
			}
		}
	}
	clear(t.paths)
}

// disconnected forgets what the server kept, and what was under way.
func (t *watchTable) disconnected() {
	for path, p := range t.paths {
		p.server, p.inFlight = 0, 0
		if p.wanted() == 0 {
			delete(t.paths, path)
		}
	}
}

// setWatchesChunk is about how many bytes of paths go into one setWatches, less
// than the smallest limit that servers have for a request.
const setWatchesChunk = 128 << 10

// rewatch sends what sets all watches again on a new link, and tells the
// persistent ones that they may have missed something.
func (t *watchTable) rewatch(l *link, relative int64) {
	chunk, size := new(proto.SetWatches2), 0
	flush := func() {
		if size > 0 {
			k := t.core.calls.Get().(*call)
			k.xid, k.op, k.abandoned, k.rec = proto.XidSetWatches, proto.OpSetWatches2, true, chunk
			if len(chunk.Persistent)+len(chunk.PersistentRecursive) == 0 {
				k.op = proto.OpSetWatches // which ZooKeeper 3.5 has, too
				k.rec = &proto.SetWatches{RelativeZxid: relative, Data: chunk.Data, Exist: chunk.Exist, Child: chunk.Child}
			}
			l.push(k)
		}
		chunk, size = &proto.SetWatches2{
			RelativeZxid: relative,
			// Null lists are refused.
			Data: []string{}, Exist: []string{}, Child: []string{}, Persistent: []string{}, PersistentRecursive: []string{},
		}, 0
	}
	flush()
	for path, p := range t.paths {
		for k, list := range p.watchers {
			if len(list) == 0 {
				continue
			}
			to := [...]*[]string{&chunk.Data, &chunk.Exist, &chunk.Child, &chunk.Persistent, &chunk.PersistentRecursive}[k]
			*to = append(*to, path)
			if size += len(path) + 4; size >= setWatchesChunk {
				flush()
			}
		}
		p.server = p.wanted()
		for _, list := range p.watchers[kindPersistent:] {
			for _, w := range list {
				w.deliver(Event{Type: EventResync, Path: path, Zxid: -1})
			}
		}
	}
	flush()
	if l.out != nil {
		l.kick()
	}
}
