package checkers_test

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// madeFacts returns histories of single znodes.
func madeFacts() []handmade {
	base := func() *made { return newMade().on(1, create("/a", "1.1", 10), setTo("/a", "1.2", 10, 11, 1)) }
	only, both := []string{"facts"}, []string{"facts", "registers"}
	return []handmade{
		{"all is well", base().on(2, read("/a", "1.2", 11, 10, 11, 1)).on(1, remove("/a", 12), create("/a", "1.3", 13)).on(2, read("/a", "1.3", 14, 13, 13, 0)), nil},
		{"a lagging read", base().on(2, read("/a", "1.1", 10, 10, 10, 0)), nil},
		{"a write without a reply was executed", base().on(1, lost(setTo("/a", "1.3", 0, 0, 0))).on(2, read("/a", "1.3", 12, 10, 12, 2)), nil},
		{"a write without a reply was not executed", base().on(1, lost(setTo("/a", "1.3", 0, 0, 0))).on(2, read("/a", "1.2", 12, 10, 11, 1)), nil},
		{"a write without a reply was replaced", base().on(1, lost(setTo("/a", "1.3", 0, 0, 0))).on(2, setTo("/a", "2.1", 10, 13, 3)), nil},
		{"a delete without a reply was executed", base().on(1, lost(remove("/a", 0))).on(2, exists("/a", 13, nil)), nil},
		{"a create without a reply was executed", base().on(1, remove("/a", 12), lost(create("/a", "1.3", 0))).on(2, exists("/a", 14, stat(13, 13, 0))), nil},
		{"a create without a reply was executed and written over", newMade().on(1, lost(create("/a", "1.1", 0))).on(2, setTo("/a", "2.1", 10, 11, 1), setTo("/a", "2.2", 10, 12, 2)), nil},
		{"lists alone show a child go and come back", newMade().on(1, create("/p", "1.1", 10), create("/p/a", "1.2", 11)).
			on(2, list("/p", 12, parent(10, 11, 1), "a"), list("/p", 14, parent(10, 13, 2)), list("/p", 16, parent(10, 15, 3), "a")).
			on(1, lost(remove("/p/a", 0)), lost(create("/p/a", "1.3", 0))), nil},
		{"a multi without a reply was executed", base().on(1, create("/b", "1.3", 12), lost(history.Op{Op: proto.OpMulti, Parts: []history.Part{
			{Op: proto.OpSetData, Path: "/a", Value: "1.4", Version: -1}, {Op: proto.OpSetData, Path: "/b", Value: "1.5", Version: -1}}})).
			on(2, read("/a", "1.4", 13, 10, 13, 2), read("/b", "1.5", 13, 12, 13, 1)), nil},
		{"a multi that wrote a znode twice", base().on(1, history.Op{Op: proto.OpMulti, Zxid: 12, Parts: []history.Part{
			{Op: proto.OpSetData, Path: "/a", Value: "1.3", Version: -1, Stat: stat(10, 12, 2)}, {Op: proto.OpSetData, Path: "/a", Value: "1.4", Version: -1, Stat: stat(10, 12, 3)}}}).
			on(2, read("/a", "1.4", 13, 10, 12, 3)), nil},

		{"a multi without a reply was executed by half", base().on(1, create("/b", "1.3", 12), lost(history.Op{Op: proto.OpMulti, Parts: []history.Part{
			{Op: proto.OpSetData, Path: "/a", Value: "1.4", Version: -1}, {Op: proto.OpSetData, Path: "/b", Value: "1.5", Version: -1}}})).
			on(2, read("/a", "1.4", 14, 10, 13, 2), read("/b", "1.3", 14, 12, 12, 0)), only},
		{"an old state under a new zxid", base().on(2, read("/a", "1.1", 11, 10, 10, 0)), only},
		{"nobody wrote that", base().on(2, read("/a", "9.9", 13, 10, 12, 2)), only},
		{"it was written elsewhere", base().on(1, create("/b", "1.3", 12)).on(2, read("/a", "1.3", 13, 10, 12, 2)), only},
		{"a refused write is there", base().on(1, refused(setTo("/a", "1.3", 0, 12, 0), proto.ErrBadVersion)).on(2, read("/a", "1.3", 13, 10, 12, 2)), both},
		{"it was written at another zxid", base().on(2, read("/a", "1.2", 13, 10, 12, 1)), only},
		{"gone without a delete", base().on(2, exists("/a", 13, nil)), only},
		{"there again without a create", base().on(1, remove("/a", 12)).on(2, exists("/a", 14, stat(13, 13, 0))), only},
		{"there in spite of its delete", base().on(1, remove("/a", 12)).on(2, read("/a", "1.2", 13, 10, 11, 1)), only},
		{"said to be there in spite of its delete", base().on(1, remove("/a", 12)).on(2, refused(create("/a", "2.1", 13), proto.ErrNodeExists)), both},
		{"not there in the middle of its life", base().on(2, exists("/a", 12, nil), read("/a", "1.2", 13, 10, 11, 1)), only},
		{"two at a time", base().on(1, remove("/a", 12), create("/a", "1.3", 13)).on(2, read("/a", "1.2", 12, 10, 11, 1), read("/a", "1.3", 13, 13, 13, 0), exists("/a", 14, stat(10, 11, 1))), only},
		{"a version too many", base().on(2, setTo("/a", "2.1", 10, 12, 3)), both},
		{"a version twice", base().on(2, setTo("/a", "2.1", 10, 12, 1)), both},
		{"a write in spite of its version", base().on(2, func() history.Op { o := setTo("/a", "2.1", 10, 12, 2); o.Version = 5; return o }()), both},
		{"its mzxid is of another write", base().on(1, create("/b", "1.3", 12)).on(2, exists("/a", 13, stat(10, 12, 2))), only},
		{"a list lacks a child", newMade().on(1, create("/p", "1.1", 10), create("/p/a", "1.2", 11), create("/p/b", "1.3", 12)).on(2, list("/p", 12, parent(10, 12, 2), "b")), only},
		{"a list lacks a child that is seen later", newMade().on(1, create("/p", "1.1", 10), create("/p/a", "1.2", 11), create("/p/b", "1.3", 12)).
			on(2, list("/p", 12, parent(10, 12, 2), "b"), exists("/p/a", 13, stat(11, 11, 0))).on(1, lost(remove("/p/a", 0))), only},
		{"a list has what is not there", newMade().on(1, create("/p", "1.1", 10), create("/p/a", "1.2", 11), remove("/p/a", 12)).on(2, list("/p", 12, parent(10, 12, 2), "a")), only},
		{"the children changed and the pzxid did not", newMade().on(1, create("/p", "1.1", 10), create("/p/a", "1.2", 11)).on(2, exists("/p", 12, parent(10, 10, 0))), only},
	}
}

// madeOrder returns histories about real-time order.
func madeOrder() []handmade {
	base := func() *made { return newMade().on(1, create("/a", "1.1", 10), setTo("/a", "1.2", 10, 11, 1)) }
	both := func() *made { // two at the same time
		m := base()
		m.on(1, setTo("/a", "1.3", 10, 13, 3)).on(2, setTo("/a", "2.1", 10, 12, 2))
		m.h.Ops[3].Call, m.h.Ops[3].Return = m.h.Ops[2].Call, m.h.Ops[2].Return
		return m
	}
	return []handmade{
		{"two writes at a time", both(), nil},
		{"a read after a sync", base().on(2, syncTo(11), read("/a", "1.2", 11, 10, 11, 1)), nil},
		{"a write has a zxid that was known before", base().on(2, create("/b", "2.1", 15)).on(1, create("/c", "1.4", 12)), []string{"realtime"}},
		{"a read after a sync lags", base().on(2, syncTo(11)).on(1, setTo("/a", "1.3", 10, 12, 2)).on(2, read("/a", "1.2", 11, 10, 11, 1)), nil},
		{"a sync is of the past", base().on(1, setTo("/a", "1.3", 10, 12, 2)).on(2, syncTo(11), read("/a", "1.2", 11, 10, 11, 1)), []string{"realtime", "registers"}},
		{"a linearizable read", base().on(1, setTo("/a", "1.3", 10, 12, 2)).on(2, linear(read("/a", "1.3", 12, 10, 12, 2))), nil},
		{"a plain read is of the past", base().on(1, setTo("/a", "1.3", 10, 12, 2)).on(2, read("/a", "1.2", 11, 10, 11, 1)), nil},
		{"a linearizable read is of the past", base().on(1, setTo("/a", "1.3", 10, 12, 2)).on(2, linear(read("/a", "1.2", 11, 10, 11, 1))), []string{"realtime", "registers"}},
		{"a linearizable exists is of the past", base().on(1, setTo("/a", "1.3", 10, 12, 2)).on(2, linear(exists("/a", 11, stat(10, 11, 1)))), []string{"realtime"}},
		{"one transaction for two", base().on(2, create("/b", "2.1", 12), create("/c", "2.2", 12)), []string{"realtime"}},
		{"a write takes effect before it is sent", newMade().on(1, create("/a", "1.1", 10)).on(2, syncTo(10), read("/a", "1.2", 11, 10, 11, 1)).on(1, setTo("/a", "1.2", 10, 11, 1)), []string{"realtime", "registers"}},
		{"one without a reply does, too", newMade().on(1, create("/a", "1.1", 10)).on(2, syncTo(10), read("/a", "1.2", 11, 10, 11, 1)).on(1, lost(setTo("/a", "1.2", 10, 11, 1))), []string{"realtime", "registers"}},
		{"two creates of one znode", newMade().on(1, create("/a", "1.1", 10), setTo("/a", "1.2", 10, 11, 1)).on(2, create("/a", "2.1", 12)), []string{"facts", "registers"}},
		{"later and higher", newMade().on(1, create("/q", "1.1", 9), sequential("/q/n", "/q/n0000000000", 10), sequential("/q/n", "/q/n0000000003", 11)), nil},
		{"a new parent", newMade().on(1, create("/q", "1.1", 9), sequential("/q/n", "/q/n0000000000", 10), remove("/q/n0000000000", 11), remove("/q", 12), create("/q", "1.2", 13), func() history.Op {
			o := sequential("/q/n", "/q/n0000000000", 14)
			o.Value = "1.3"
			return o
		}()), nil},
		{"later and lower", newMade().on(1, create("/q", "1.1", 9), sequential("/q/n", "/q/n0000000003", 10), sequential("/q/n", "/q/n0000000002", 11)), []string{"sequences"}},
		{"a number again", newMade().on(1, create("/q", "1.1", 9), sequential("/q/n", "/q/n0000000003", 10), sequential("/q/m", "/q/m0000000003", 11)), []string{"sequences"}},
		{"a name without a number", newMade().on(1, create("/q", "1.1", 9), sequential("/q/n", "/q/nnnnnnnnnnnn", 10)), []string{"sequences"}},
	}
}
