package checkers

import (
	"cmp"
	"math"
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// armed is a watch that has been registered.
type armed struct {
	zxid int64 // of the state in which it was registered: later changes must be reported
	rec  record
	told map[told]bool // for a persistent watch
}

// told identifies an event.
type told struct {
	typ  proto.EventType
	path string
	zxid int64
}

// watcher is the state of one connection while its frames are checked.
type watcher struct {
	x  *index
	r  *Result
	ch *changes

	data, kids            map[string]*armed // one-shot; data includes the data watches of exists
	persistent, recursive map[string]*armed
	again                 *catchUp // a setWatches2 that has no reply yet

	newest  *history.Op // the reply with the highest zxid so far
	highest int64       // zxid of newest
	lastEv  *history.Event

	events, left int
}

// catchUp lists the events that a setWatches2 may report before its reply.
type catchUp struct {
	op                *history.Op
	data, exist, kids map[string]bool
}

// watches checks that every change that a client watches is reported to it, on
// the same connection, before any reply from a state that shows it; in the order
// of the transactions; once for a one-shot watch. It also checks that no event is
// reported that the client does not watch or that did not happen.
func watches(x *index, _ *Options, r *Result) {
	ch := x.knownChanges()
	events, left := 0, 0
	for _, c := range x.conns {
		if len(c.frames) == 0 {
			continue
		}
		w := &watcher{x: x, r: r, ch: ch, data: make(map[string]*armed), kids: make(map[string]*armed),
			persistent: make(map[string]*armed), recursive: make(map[string]*armed)}
		w.begin(c)
		for _, f := range c.frames {
			if f.op != nil {
				w.reply(f.op)
			} else {
				w.event(f.event)
			}
		}
		w.end()
		events += w.events
		left += w.left
	}
	r.count(left, "watches")
	r.count(events, "events")
	r.count(len(ch.all), "changes")
}

// begin records which watches the connection asks to set again.
func (w *watcher) begin(c *connection) {
	for _, o := range c.ops {
		if o.Op == proto.OpSetWatches2 {
			w.again = &catchUp{op: o, data: set(o.Watches.Data), exist: set(o.Watches.Exist), kids: set(o.Watches.Child)}
			return
		}
	}
}

func set(list []string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, s := range list {
		m[s] = true
	}
	return m
}

// reply processes a reply: it may register a watch, and it must not show a change
// that should have been reported before.
func (w *watcher) reply(o *history.Op) {
	if o.Zxid <= 0 {
		return
	}
	if o.Zxid > w.highest {
		w.newest, w.highest = o, o.Zxid
	}
	switch {
	case o.Op == proto.OpSetWatches2 && o.Code == proto.Ok:
		w.setAgain(o)
	case o.Op == proto.OpAddWatch && o.Code == proto.Ok:
		w.leave(w.lasting(o.Add), o.Path, o.Zxid, o)
	case !o.Watch:
	case o.Op == proto.OpGetChildren2 && o.Code == proto.Ok:
		w.leave(w.kids, o.Path, o.Zxid, o)
	case o.Op == proto.OpGetData && o.Code == proto.Ok, o.Op == proto.OpExists && (o.Code == proto.Ok || o.Code == proto.ErrNoNode):
		w.leave(w.data, o.Path, o.Zxid, o)
	}
}

// lasting returns the watches of an addWatch mode.
func (w *watcher) lasting(mode int32) map[string]*armed {
	if proto.AddWatchMode(mode) == proto.AddWatchPersistent {
		return w.persistent
	}
	return w.recursive
}

// leave registers a watch. If the watch already exists, we don't change it, so that we
// still check the changes it should have reported.
func (w *watcher) leave(kind map[string]*armed, path string, zxid int64, rec record) {
	w.left++
	if a := kind[path]; a != nil {
		return
	}
	kind[path] = &armed{zxid: zxid, rec: rec, told: make(map[told]bool)}
}

// setAgain registers the watches that a setWatches2 left. A watch that reported a change while
// catching up is used up; the others count from the zxid that the client knew.
func (w *watcher) setAgain(o *history.Op) {
	q := w.again
	if q == nil || q.op != o {
		return
	}
	w.again = nil
	for path := range q.data {
		w.leave(w.data, path, o.Watches.Relative, o)
	}
	for path := range q.exist {
		w.leave(w.data, path, o.Zxid, o)
		if p := w.x.paths[path]; p != nil {
			if in := p.alive(o.Zxid); in != nil {
				w.r.violation(w.x, []record{in.rec, o}, "%s: a watch for its creation was set again at zxid %#x, when it was there, and the client was not told", path, o.Zxid)
			}
		}
	}
	for path := range q.kids {
		w.leave(w.kids, path, o.Watches.Relative, o)
	}
	for _, path := range o.Watches.Persistent {
		w.leave(w.persistent, path, o.Zxid, o)
	}
	for _, path := range o.Watches.Recursive {
		w.leave(w.recursive, path, o.Zxid, o)
	}
}

// event processes a notification.
func (w *watcher) event(e *history.Event) {
	w.events++
	if e.Zxid <= 0 {
		w.caughtUp(e)
		return
	}
	w.order(e)
	w.happened(e)
	matched, early := w.match(e)
	switch {
	case !matched && early != nil:
		w.r.violation(w.x, []record{early.rec, e}, "%s: event %d of zxid %#x, which the client had seen when it left its watch at %#x", e.Path, e.Type, e.Zxid, early.zxid)
	case !matched:
		w.r.violation(w.x, []record{e}, "%s: event %d of zxid %#x, which the client does not watch, or not any more", e.Path, e.Type, e.Zxid)
	}
}

// order checks that events come in the order of their transactions and before
// every reply from a state in which they have happened.
func (w *watcher) order(e *history.Event) {
	if w.highest >= e.Zxid {
		w.r.violation(w.x, []record{w.newest, e}, "%s: the event of zxid %#x came after a reply of zxid %#x", e.Path, e.Zxid, w.highest)
	}
	if w.lastEv != nil && w.lastEv.Zxid > e.Zxid {
		w.r.violation(w.x, []record{w.lastEv, e}, "the event of zxid %#x came after that of zxid %#x", e.Zxid, w.lastEv.Zxid)
	}
	w.lastEv = e
}

// happened checks that a known transaction has caused the event.
func (w *watcher) happened(e *history.Event) {
	known := w.x.byZxid[e.Zxid]
	if len(known) == 0 {
		if o := w.x.ops[e.Zxid]; o != nil && o.Op != proto.OpCloseSession {
			w.r.violation(w.x, []record{o, e}, "%s: an event of zxid %#x, a transaction that changed nothing", e.Path, e.Zxid)
		}
		return
	}
	for _, k := range known {
		if e.Type == eventOf(k.kind) && e.Path == k.path ||
			e.Type == proto.EventNodeChildrenChanged && k.kind != proto.OpSetData && e.Path == proto.Parent(k.path) {
			return
		}
	}
	w.r.violation(w.x, []record{known[0].op, e}, "%s: event %d of zxid %#x, a transaction that did something else", e.Path, e.Type, e.Zxid)
}

// match finds the watches that an event belongs to, and uses up the one-shot
// ones. early is a watch of that kind that was registered in a later state.
func (w *watcher) match(e *history.Event) (matched bool, early *armed) {
	use := func(kind map[string]*armed, list []change) {
		a := kind[e.Path]
		switch {
		case a == nil:
		case a.zxid >= e.Zxid:
			early = a
		default:
			matched = true
			delete(kind, e.Path)
			if missed := after(list, a.zxid, e.Zxid-1); len(missed) > 0 {
				w.lost(a, missed[0])
			}
		}
	}
	if e.Type != proto.EventNodeChildrenChanged {
		use(w.data, w.ch.data[e.Path])
	}
	if e.Type == proto.EventNodeChildrenChanged || e.Type == proto.EventNodeDeleted {
		use(w.kids, w.ch.kids[e.Path])
	}
	stays := func(a *armed) {
		t := told{e.Type, e.Path, e.Zxid}
		if a == nil || a.zxid >= e.Zxid {
			return
		}
		if a.told[t] && !matched && !w.mayRepeat(e) {
			w.r.violation(w.x, []record{a.rec, e}, "%s: event %d of zxid %#x came twice", e.Path, e.Type, e.Zxid)
		}
		matched = true
		a.told[t] = true
	}
	stays(w.persistent[e.Path])
	if e.Type != proto.EventNodeChildrenChanged {
		for dir := e.Path; dir != ""; dir = proto.Parent(dir) {
			stays(w.recursive[dir])
			if dir == "/" {
				break
			}
		}
	}
	return matched, early
}

// mayRepeat reports whether one transaction can have caused an event more than
// once: a multi that wrote a znode twice, perhaps one without a reply, or several
// children that were deleted at the same time.
func (w *watcher) mayRepeat(e *history.Event) bool {
	if e.Type == proto.EventNodeChildrenChanged || e.Type == proto.EventNodeDataChanged && len(w.x.byZxid[e.Zxid]) == 0 {
		return true
	}
	n := 0
	for _, k := range w.x.byZxid[e.Zxid] {
		if k.path == e.Path {
			n++
		}
	}
	return n > 1
}

// lost reports a change that was not reported to the client.
func (w *watcher) lost(a *armed, c change) {
	records := []record{a.rec, c.rec}
	if w.newest != nil {
		records = append(records, w.newest)
	}
	w.r.violation(w.x, records, "%s: the client watches since zxid %#x, has been shown zxid %#x, and was not told what happened at %#x (event %d)", c.path, a.zxid, w.highest, c.zxid, c.typ)
}

// end looks for changes that should have been reported by the last reply.
func (w *watcher) end() {
	for path, a := range w.data {
		if missed := after(w.ch.data[path], a.zxid, w.highest); len(missed) > 0 {
			w.lost(a, missed[0])
		}
	}
	for path, a := range w.kids {
		if missed := after(w.ch.kids[path], a.zxid, w.highest); len(missed) > 0 {
			w.lost(a, missed[0])
		}
	}
	for path, a := range w.persistent {
		w.lasted(a, after(w.ch.data[path], a.zxid, w.highest), path)
		w.lasted(a, after(w.ch.kids[path], a.zxid, w.highest), path)
	}
	for path, a := range w.recursive {
		w.lasted(a, after(w.ch.all, a.zxid, w.highest), path)
	}
}

// lasted looks for the changes at or below a path that a persistent watch did not
// report.
func (w *watcher) lasted(a *armed, list []change, path string) {
	for _, c := range list {
		if under(c.path, path) && !a.told[told{c.typ, c.path, c.zxid}] {
			w.lost(a, c)
		}
	}
}

// caughtUp processes an event without a zxid. Only a setWatches2 causes such
// events, and only before its reply.
func (w *watcher) caughtUp(e *history.Event) {
	q := w.again
	if q == nil {
		w.r.violation(w.x, []record{e}, "%s: an event without a zxid, and no setWatches is waiting", e.Path)
		return
	}
	relative, highest := q.op.Watches.Relative, int64(math.MaxInt64)
	if q.op.Answered() {
		highest = q.op.Zxid
	}
	p := w.x.paths[e.Path]
	ok, same := false, record(nil)
	take := func(m map[string]bool) {
		if !ok && m[e.Path] {
			ok = true
			delete(m, e.Path)
		}
	}
	switch e.Type {
	case proto.EventNodeCreated:
		take(q.exist)
	case proto.EventNodeDeleted:
		take(q.data)
		take(q.kids)
		same = p.unchanged(relative, highest, func(in *incarnation) []*version { return []*version{{span: in.span}} })
	case proto.EventNodeDataChanged:
		take(q.data)
		same = p.unchanged(relative, highest, func(in *incarnation) []*version { return in.data })
	case proto.EventNodeChildrenChanged:
		take(q.kids)
		same = p.unchanged(relative, highest, func(in *incarnation) []*version { return in.kids })
	}
	if !ok {
		w.r.violation(w.x, []record{q.op, e}, "%s: event %d before the reply to a setWatches that did not ask for it", e.Path, e.Type)
	}
	if same != nil {
		w.r.violation(w.x, []record{q.op, e, same}, "%s: event %d is said to have happened since zxid %#x, and did not", e.Path, e.Type, relative)
	}
}

// unchanged returns a record that shows that something did not change from one
// zxid to another, or nil if there is none.
func (p *path) unchanged(from, to int64, of func(*incarnation) []*version) record {
	if p == nil {
		return nil
	}
	in := p.before(from)
	if in == nil {
		return nil
	}
	list := of(in)
	i, _ := slices.BinarySearchFunc(list, from+1, func(v *version, z int64) int { return cmp.Compare(v.from, z) })
	if i == 0 || list[i-1].last < to {
		return nil
	}
	return list[i-1].rec
}
