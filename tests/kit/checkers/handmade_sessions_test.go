package checkers_test

import (
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// in adds a session to a request.
func in(session int64, o history.Op) history.Op {
	o.Session = session
	return o
}

// madeSessions returns histories of sessions, their ephemerals and their ends.
func madeSessions() []handmade {
	none := func(zxid int64) history.Op { return exists("/x", zxid, nil) }
	moved := func() *made {
		return newMade().session(1, 1, history.Created).on(1, none(10), none(11)).session(2, 1, history.Attached)
	}
	swapped := newMade().on(1, none(10), none(10))
	swapped.h.Ops[0].Seq, swapped.h.Ops[1].Seq = 2, 1
	stray := newMade().on(1, none(10))
	stray.h.Ops = append(stray.h.Ops, &history.Op{Conn: 1, Session: 1, Op: proto.OpError, Seq: 2, Return: 9e9, Zxid: 10})
	garbled := newMade().on(1, none(10))
	garbled.h.Ops[0].Bad = "3 bytes after it"
	eph := func() *made { return newMade().on(1, ephemeral("/e", "1.1", 10, 1)) }
	told := func() *made {
		return newMade().session(1, 1, history.Created).on(1, none(10)).session(1, 1, history.Expired)
	}
	late := func() *made { m := eph(); m.now += 60e9; return m.session(1, 1, history.Expired) }
	return []handmade{
		{"a session moves", moved().on(2, in(1, none(11)), in(1, none(14))), nil},
		{"requests at the end have no reply", newMade().on(1, none(10), lost(none(0)), lost(none(0))), nil},
		{"what was sent before the move was executed before", moved().on(1, lost(create("/a", "1.1", 0))).on(2, in(1, none(13))).on(3, read("/a", "1.1", 14, 12, 12, 0)), nil},
		{"zxids go back", newMade().on(1, none(11), none(10)), []string{"sessions"}},
		{"zxids go back on another server", moved().on(2, in(1, none(10))), []string{"sessions"}},
		{"replies change places", swapped, []string{"sessions"}},
		{"a reply is left out", newMade().on(1, none(10), lost(none(0)), none(10)), []string{"sessions"}},
		{"a reply that nobody waits for", stray, []string{"sessions"}},
		{"a reply that nobody understands", garbled, []string{"sessions"}},
		{"what was sent before the move was executed after it", moved().on(1, lost(create("/a", "1.1", 0))).on(2, in(1, none(13))).on(3, read("/a", "1.1", 16, 15, 15, 0)), []string{"sessions"}},

		{"an ephemeral ends with its session", eph().on(1, closing(12)).on(2, exists("/e", 12, nil)), nil},
		{"an ephemeral is deleted", eph().on(2, remove("/e", 12), exists("/e", 12, nil)).on(1, none(13)), nil},
		{"an ephemeral may have been deleted", eph().on(2, lost(remove("/e", 0))).on(3, exists("/e", 12, nil)).on(1, none(13)), nil},
		{"an ephemeral ends with an expired session", late().on(2, create("/b", "2.1", 20), exists("/e", 20, nil)), nil},
		{"an ephemeral outlives its session", eph().on(1, closing(12)).on(2, exists("/e", 12, owned(stat(10, 10, 0), 1))), []string{"ephemerals"}},
		{"an ephemeral outlives an expired session", late().on(2, create("/b", "2.1", 20), exists("/e", 20, owned(stat(10, 10, 0), 1))), []string{"ephemerals"}},
		{"an ephemeral is said to outlive an expired session", late().on(2, create("/b", "2.1", 20), refused(ephemeral("/e", "2.2", 21, 2), proto.ErrNodeExists)), []string{"ephemerals"}},
		{"another ephemeral may have taken its place", late().on(3, lost(ephemeral("/e", "3.1", 0, 3))).on(2, create("/b", "2.1", 20), refused(ephemeral("/e", "2.2", 21, 2), proto.ErrNodeExists)), nil},
		{"an ephemeral goes before its session", eph().on(2, exists("/e", 12, nil)).on(1, none(13)), []string{"ephemerals"}},
		{"one of two ephemerals goes", eph().on(1, ephemeral("/f", "1.2", 11, 1)).on(2, exists("/e", 12, nil), exists("/f", 13, owned(stat(11, 11, 0), 1))), []string{"ephemerals"}},
		{"an ephemeral without an owner", newMade().on(1, ephemeral("/e", "1.1", 10, 0)), []string{"ephemerals"}},
		{"an ephemeral is in the table's way", eph().state(1, 20, []int64{}, root(10), node("/e", "1.1", owned(stat(10, 10, 0), 1))), []string{"ephemerals"}},
		{"a closed session is in the table", eph().on(1, closing(12)).state(1, 20, []int64{1}, root(12)), []string{"ephemerals"}},

		{"a silent client expires", late(), nil},
		{"a client expires that was heard", told(), []string{"expiry"}},
		{"a client expires that has just come back", late().session(2, 2, history.Created).session(3, 2, history.Attached).session(4, 2, history.Expired), []string{"expiry"}},
	}
}

// madeLocks returns histories of locks.
func madeLocks() []handmade {
	queue := func(m *made) *made {
		return m.on(1, ephemeral("/l/n1", "1.1", 10, 1)).on(2, ephemeral("/l/n2", "2.1", 11, 2))
	}
	back := func() *made {
		m := queue(newMade())
		m.now = 20e9
		return m.on(1, remove("/l/n1", 12)).on(2, exists("/l/n1", 12, nil))
	}
	told := queue(newMade())
	told.now = 50e9
	told.on(1, exists("/l/n1", 11, owned(stat(10, 10, 0), 1)))
	return []handmade{
		{"one after the other", back().hold(1, 10, 5, 20).hold(2, 11, 22, 30), nil},
		{"a holder comes back to his session", back().hold(1, 10, 5, 8).hold(1, 10, 9, 20).hold(2, 11, 22, 30), nil},
		{"two holders", queue(newMade()).hold(1, 10, 5, 25).hold(2, 11, 22, 30), []string{"locks"}},
		{"two holders after a long one", queue(newMade()).on(3, ephemeral("/l/n3", "3.1", 12, 3)).hold(1, 10, 5, 40).hold(2, 11, 6, 7).hold(3, 12, 30, 50), []string{"locks"}},
		{"a holder is told that he is one", told.hold(1, 10, 5, 15).hold(2, 11, 22, 60), []string{"locks"}},
		{"out of turn", back().hold(2, 11, 5, 20).hold(1, 10, 22, 30), []string{"locks"}},
	}
}

// root returns the root after its children have changed at a zxid.
func root(pzxid int64) history.Node { return node("/", "", &history.Stat{Pzxid: pzxid}) }

// madeStates returns histories with the final states of servers.
func madeStates() []handmade {
	base := func() *made { return newMade().on(1, create("/a", "1.1", 10)) }
	root := root(10)
	a := node("/a", "1.1", stat(10, 10, 0))
	digest := func(d1, d2 string, z2 int64) *made {
		m := base().state(1, 12, nil).state(2, z2, nil)
		m.h.States[0].Digest, m.h.States[1].Digest = d1, d2
		return m
	}
	return []handmade{
		{"all hold the same", base().state(1, 12, []int64{1}, root, a).state(2, 12, []int64{1}, root, a).state(3, 12, []int64{1}, root, a), nil},
		{"digests of different states", digest("x", "y", 13), nil},
		{"digests differ", digest("x", "y", 12), []string{"replicas"}},
		{"one has lost a znode", base().state(1, 12, nil, root, a).state(2, 12, nil, root), []string{"facts", "replicas"}},
		{"one has one too many", base().state(1, 12, nil, root, a).state(2, 12, nil, root, a, node("/b", "", stat(11, 11, 0))), []string{"facts", "replicas"}},
		{"one has other data", base().state(1, 12, nil, root, a).state(2, 12, nil, root, node("/a", "", stat(10, 10, 0))), []string{"replicas"}},
		{"one has other sessions", base().state(1, 12, []int64{1}, root, a).state(2, 12, []int64{1, 2}, root, a), []string{"replicas"}},
		{"an acknowledged create is gone everywhere", base().state(1, 12, nil, root).state(2, 12, nil, root), []string{"facts"}},
		{"an acknowledged write is gone everywhere", base().on(1, setTo("/a", "1.2", 10, 11, 1)).state(1, 12, nil, root, a).state(2, 12, nil, root, a), []string{"facts"}},
		{"an acknowledged delete is undone", base().on(1, remove("/a", 11)).state(1, 12, nil, a), []string{"facts"}},
	}
}
