package checkers_test

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

const (
	created = proto.EventNodeCreated
	deleted = proto.EventNodeDeleted
	changed = proto.EventNodeDataChanged
	kids    = proto.EventNodeChildrenChanged
)

// addWatch returns a request for a persistent watch.
func addWatch(path string, mode proto.AddWatchMode, zxid int64) history.Op {
	return history.Op{Op: proto.OpAddWatch, Path: path, Add: int32(mode), Zxid: zxid}
}

// again returns a request that sets watches again.
func again(zxid int64, w history.Watches) history.Op {
	return history.Op{Op: proto.OpSetWatches2, Watches: &w, Zxid: zxid}
}

// madeWatches returns histories of watches: connection 1 writes, connection 2
// watches.
func madeWatches() []handmade {
	only := []string{"watches"}
	armed := func() *made {
		return newMade().on(1, create("/a", "1.1", 10)).on(2, watched(read("/a", "1.1", 10, 10, 10, 0))).on(1, setTo("/a", "1.2", 10, 11, 1))
	}
	after := read("/a", "1.2", 11, 10, 11, 1)
	dir := func() *made {
		return newMade().on(1, create("/p", "1.1", 10)).on(2, watched(list("/p", 10, parent(10, 10, 0)))).on(1, create("/p/a", "1.2", 11))
	}
	stays := func(mode proto.AddWatchMode) *made {
		return newMade().on(1, create("/a", "1.1", 10)).on(2, addWatch("/a", mode, 10)).on(1, setTo("/a", "1.2", 10, 11, 1), create("/a/b", "1.3", 12))
	}
	moved := func(w history.Watches) *made {
		return newMade().on(1, create("/a", "1.1", 10), setTo("/a", "1.2", 10, 11, 1))
	}
	known := func(zxid int64, st *history.Stat) history.Op { return exists("/a", zxid, st) }
	data := history.Watches{Relative: 10, Data: []string{"/a"}}
	return []handmade{
		{"an event before the reply", armed().event(2, changed, "/a", 11).on(2, after), nil},
		{"an event that is still on its way", armed().on(2, read("/a", "1.1", 10, 10, 10, 0)), nil},
		{"a watch for what is not there", newMade().on(2, watched(exists("/a", 9, nil))).on(1, create("/a", "1.1", 10)).event(2, created, "/a", 10).on(2, known(10, stat(10, 10, 0))), nil},
		{"children", dir().event(2, kids, "/p", 11).on(2, list("/p", 11, parent(10, 11, 1), "a")), nil},
		{"a watch that stays", stays(proto.AddWatchPersistent).event(2, changed, "/a", 11).event(2, kids, "/a", 12).on(2, exists("/a/b", 12, stat(12, 12, 0))), nil},
		{"a recursive watch", stays(proto.AddWatchPersistentRecursive).event(2, changed, "/a", 11).event(2, created, "/a/b", 12).on(2, exists("/a/b", 12, stat(12, 12, 0))), nil},
		{"what changed meanwhile", moved(data).event(2, changed, "/a", -1).on(2, again(11, data), after), nil},
		{"nothing changed meanwhile", moved(data).on(2, again(11, history.Watches{Relative: 11, Data: []string{"/a"}}), after).on(1, remove("/a", 12)).event(2, deleted, "/a", 12).on(2, exists("/a", 12, nil)), nil},
		{"a multi without a reply wrote twice", newMade().on(1, create("/a", "1.1", 10)).on(2, addWatch("/a", proto.AddWatchPersistent, 10)).
			on(1, lost(history.Op{Op: proto.OpMulti, Parts: []history.Part{{Op: proto.OpSetData, Path: "/a", Value: "1.2", Version: -1}, {Op: proto.OpSetData, Path: "/a", Value: "1.3", Version: -1}}})).
			event(2, changed, "/a", 11).event(2, changed, "/a", 11).on(3, setTo("/a", "3.1", 10, 12, 3)), nil},

		{"an event is lost", armed().on(2, after), only},
		{"an event comes after the reply", armed().on(2, after).event(2, changed, "/a", 11), only},
		{"an event comes twice", armed().event(2, changed, "/a", 11).event(2, changed, "/a", 11).on(2, after), only},
		{"an event nobody asked for", newMade().on(1, create("/a", "1.1", 10)).event(2, created, "/a", 10), only},
		{"an event of the past", newMade().on(1, create("/a", "1.1", 10), setTo("/a", "1.2", 10, 11, 1)).on(2, watched(after)).event(2, changed, "/a", 11), only},
		{"an event of the wrong kind", armed().event(2, deleted, "/a", 11).on(2, after), only},
		{"an event of a transaction that was refused", armed().event(2, changed, "/a", 11).on(2, watched(after)).on(1, refused(create("/a", "1.3", 12), proto.ErrNodeExists)).event(2, changed, "/a", 12), only},
		{"the first of two changes is not told", armed().on(1, setTo("/a", "1.3", 10, 12, 2)).event(2, changed, "/a", 12), only},
		{"events out of order", stays(proto.AddWatchPersistentRecursive).event(2, created, "/a/b", 12).event(2, changed, "/a", 11).on(2, exists("/a/b", 12, stat(12, 12, 0))), only},
		{"a change of children is lost", dir().on(2, list("/p", 11, parent(10, 11, 1), "a")), only},
		{"a watch that stays misses one", stays(proto.AddWatchPersistent).event(2, changed, "/a", 11).on(2, exists("/a/b", 12, stat(12, 12, 0))), only},
		{"a watch that stays tells twice", stays(proto.AddWatchPersistent).event(2, changed, "/a", 11).event(2, changed, "/a", 11).event(2, kids, "/a", 12).on(2, exists("/a/b", 12, stat(12, 12, 0))), only},
		{"a recursive watch misses one", stays(proto.AddWatchPersistentRecursive).event(2, changed, "/a", 11).on(2, exists("/a/b", 12, stat(12, 12, 0))), only},
		{"what changed meanwhile is not told", moved(data).on(2, again(11, data), after), only},
		{"what did not change meanwhile is told", moved(data).on(3, after).event(2, changed, "/a", -1).on(2, again(11, history.Watches{Relative: 11, Data: []string{"/a"}})), only},
		{"what was created meanwhile is not told", moved(data).on(2, again(11, history.Watches{Relative: 9, Exist: []string{"/a"}})).on(3, known(11, stat(10, 11, 1))), only},
		{"what nobody asked for is told", moved(data).event(2, changed, "/b", -1).event(2, changed, "/a", -1).on(2, again(11, data)), only},
		{"what was watched is told later, without a zxid", moved(data).event(2, changed, "/a", -1).on(2, again(11, data)).event(2, changed, "/a", -1), only},
	}
}
