package client

import (
	"slices"

	"github.com/zkgo/zkgo/proto"
)

// armed is the set of the watches that a server has for one path. A server doesn't
// distinguish data and exist watches.
type armed uint8

const (
	armedData armed = 1 << iota
	armedChild
	armedPersistent
	armedRecursive
)

// standard is the set of one-shot watches, which an event consumes.
const standard = armedData | armedChild

func (k kind) armed() armed {
	return [...]armed{armedData, armedData, armedChild, armedPersistent, armedRecursive}[k]
}

// watchedPath is the state of one watched path.
type watchedPath struct {
	watchers [kinds][]*Watch
	server   armed // the server's watches for this connection
	inFlight int   // requests in flight that will arm a watch
}

// wanted returns the watches that the server should have.
func (p *watchedPath) wanted() (a armed) {
	for k, list := range p.watchers {
		if len(list) > 0 {
			a |= kind(k).armed()
		}
	}
	return a
}

// watchTable is the set of all watches of the Client, by path. core.mu guards it.
//
// sweep removes the server's watches that no Watch needs. It runs after a removal, after an
// event, and when the reply arrives to a request that armed a watch for a caller that has
// abandoned it. We remove nothing while a request that arms a watch on the same path is in
// flight, because we would lose the new watch.
type watchTable struct {
	core  *core
	paths map[string]*watchedPath
}

// arming records that a request that sets a watch was sent.
func (t *watchTable) arming(k *call) {
	p := t.paths[k.watcher.path]
	if p == nil {
		p = &watchedPath{}
		t.paths[k.watcher.path] = p
	}
	p.inFlight++
}

// armed handles the reply to such a request.
func (t *watchTable) armed(k *call, l *link) {
	w := k.watcher
	p := t.paths[w.path]
	if p == nil || t.core.link != l {
		// The session was lost between reading the reply and this call. All its watches
		// have ended, so we end this one here: no other code would.
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

// remove ends a watch. It returns the request that it sent to the server, if any.
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

// sweep removes the server's watches that no Watch needs, and forgets the path if none is
// left. It returns the last request sent, or nil. The request's ready channel signals the
// reply.
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
			l.out.kick()
			p.server &^= r.what
		}
	}
	if wanted == 0 && p.server == 0 {
		delete(t.paths, path)
	}
	return k
}

// removal is one removeWatches request and the watches that the server drops for it.
type removal struct {
	typ  proto.WatcherType
	what armed
}

// removals chooses the removeWatches requests. Before ZooKeeper 3.9, the types for one-shot
// watches damage a persistent watch on the same path. In that case we leave an unneeded
// one-shot watch on the server until it fires.
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

// abandonSweep leaves the reply to a removal to the reader.
func (t *watchTable) abandonSweep(k *call) {
	if k != nil {
		k.abandoned = true
	}
}

// fire delivers an event to the watches that it is for.
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

// parentOf returns the parent of path, "" for the root.
func parentOf(path string) string {
	if path == "/" {
		return ""
	}
	return proto.Parent(path)
}

// endAll ends all watches with an error.
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

// disconnected forgets the server's watches and the requests in flight.
func (t *watchTable) disconnected() {
	for path, p := range t.paths {
		p.server, p.inFlight = 0, 0
		if p.wanted() == 0 {
			delete(t.paths, path)
		}
	}
}

// setWatchesChunk is the approximate number of bytes of paths in one setWatches request. We
// stay below the smallest request limit of any server.
const setWatchesChunk = 128 << 10

// rewatch sends the requests that set all watches again on a new link, and sends
// EventResync to the persistent ones.
func (t *watchTable) rewatch(l *link, relative int64) {
	chunk, size := new(proto.SetWatches2), 0
	flush := func() {
		if size > 0 {
			k := t.core.calls.Get().(*call)
			k.xid, k.op, k.abandoned, k.rec = proto.XidSetWatches, proto.OpSetWatches2, true, chunk
			if len(chunk.Persistent)+len(chunk.PersistentRecursive) == 0 {
				k.op = proto.OpSetWatches // we send this one if we can: ZooKeeper 3.5 supports it too
				k.rec = &proto.SetWatches{RelativeZxid: relative, Data: chunk.Data, Exist: chunk.Exist, Child: chunk.Child}
			}
			l.push(k)
		}
		chunk, size = &proto.SetWatches2{
			RelativeZxid: relative,
			// Servers refuse null lists.
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
	if l.out.buf != nil {
		l.out.kick()
	}
}
