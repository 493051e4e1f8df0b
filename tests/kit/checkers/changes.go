package checkers

import (
	"cmp"
	"slices"

	"github.com/zkgo/zkgo/proto"
)

// change is a change of a znode that is known to have happened: a write that was
// executed, or a change that an event reported.
type change struct {
	zxid int64
	typ  proto.EventType
	path string
	rec  record
}

// changes lists the known changes by path, sorted by zxid, each once.
type changes struct {
	data map[string][]change // created, deleted, data changed
	kids map[string][]change // children changed
	all  []change            // the changes in data
}

// knownChanges collects the known changes.
func (x *index) knownChanges() *changes {
	ch := &changes{data: make(map[string][]change), kids: make(map[string][]change)}
	for _, w := range x.writes {
		if w.done() {
			ch.add(w.zxid, eventOf(w.kind), w.path, w.op)
		}
	}
	for _, e := range x.h.Events {
		if e.Zxid > 0 {
			ch.add(e.Zxid, e.Type, e.Path, e)
		}
	}
	for path, list := range ch.data {
		ch.data[path] = unique(list)
		ch.all = append(ch.all, ch.data[path]...)
	}
	for path, list := range ch.kids {
		ch.kids[path] = unique(list)
	}
	slices.SortStableFunc(ch.all, func(a, b change) int { return cmp.Or(cmp.Compare(a.zxid, b.zxid), cmp.Compare(a.path, b.path)) })
	return ch
}

func (ch *changes) add(zxid int64, typ proto.EventType, path string, rec record) {
	if typ == proto.EventNodeChildrenChanged {
		ch.kids[path] = append(ch.kids[path], change{zxid, typ, path, rec})
		return
	}
	ch.data[path] = append(ch.data[path], change{zxid, typ, path, rec})
	if typ == proto.EventNodeDeleted { // watchers of the children get this event, too
		ch.kids[path] = append(ch.kids[path], change{zxid, typ, path, rec})
	}
	if typ != proto.EventNodeDataChanged {
		parent := proto.Parent(path)
		ch.kids[parent] = append(ch.kids[parent], change{zxid, proto.EventNodeChildrenChanged, parent, rec})
	}
}

// eventOf returns the event that a write causes.
func eventOf(kind proto.Op) proto.EventType {
	switch kind {
	case proto.OpCreate2:
		return proto.EventNodeCreated
	case proto.OpDelete:
		return proto.EventNodeDeleted
	}
	return proto.EventNodeDataChanged
}

// unique sorts a list and keeps only the first of equal changes.
func unique(list []change) []change {
	slices.SortStableFunc(list, func(a, b change) int { return cmp.Or(cmp.Compare(a.zxid, b.zxid), cmp.Compare(a.typ, b.typ)) })
	return slices.CompactFunc(list, func(a, b change) bool { return a.zxid == b.zxid && a.typ == b.typ })
}

// after returns the changes of a sorted list in (after, upTo].
func after(list []change, after, upTo int64) []change {
	at := func(z int64) int {
		i, _ := slices.BinarySearchFunc(list, z+1, func(c change, z int64) int { return cmp.Compare(c.zxid, z) })
		return i
	}
	from, to := at(after), at(upTo)
	if from >= to {
		return nil
	}
	return list[from:to]
}
