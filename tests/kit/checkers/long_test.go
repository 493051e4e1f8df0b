package checkers_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// TestALongHistory checks that checkers are fast on long runs, in which
// everything that a checker iterates over grows: the versions of a znode, the
// incarnations of a name, the turns in a queue, the changes of a list of
// children. A checker that scans one list for every record of another would need minutes here
// instead of a second or two.
func TestALongHistory(t *testing.T) {
	t.Parallel()
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	m := newMade()
	zxid := int64(1)
	next := func() int64 { zxid++; return zxid }
	// Use an ephemeral znode, so that the linearizability search skips it: the
	// search is not made for a register with that many accesses.
	born := next()
	m.on(1, ephemeral("/r", "1.0", born, 1))
	for i := range rounds {
		client := 1 + i%2
		at := next()
		st := owned(stat(born, at, int32(i+1)), 1)
		m.on(client, history.Op{Op: proto.OpSetData, Path: "/r", Value: fmt.Sprintf("%d.%d", client, i+1), Version: int32(i), Zxid: at, Stat: st})
		began := next()
		name := fmt.Sprintf("n-%010d", i)
		o := sequential("/l/n-", "/l/"+name, began)
		o.Mode, o.Stat = proto.ModeEphemeralSequential, owned(o.Stat, int64(client))
		m.on(client, o)
		m.on(3, history.Op{Op: proto.OpGetChildren2, Path: "/l", Children: []string{name}, Zxid: began, Stat: parent(1, began, int32(2*i+1))})
		from := m.now
		m.on(client, history.Op{Op: proto.OpGetData, Path: "/r", Data: fmt.Sprintf("%d.%d", client, i+1), Zxid: began, Stat: st})
		m.h.Holds = append(m.h.Holds, &history.Hold{Client: client, Conn: client, Session: int64(client), Lock: "/l", Node: "/l/" + name, Czxid: began, From: from, To: m.now})
		m.on(client, history.Op{Op: proto.OpDelete, Path: "/l/" + name, Version: -1, Zxid: next()})
		m.on(3, create("/e", fmt.Sprintf("3.%d", i), next()))
		m.on(3, history.Op{Op: proto.OpDelete, Path: "/e", Version: -1, Zxid: next()})
	}
	v := checkers.Check(&m.h, checkers.Options{})
	if !v.OK() || v.Count("locks", "holds") != rounds || v.Count("facts", "znodes") < 2*rounds {
		t.Error(v)
	}
}

// TestAHardRegister checks that if the search for the order of one register never ends, the
// registers after it still have enough time.
func TestAHardRegister(t *testing.T) {
	t.Parallel()
	m := newMade()
	m.on(1, create("/a", "1.0", 10))
	for i := range 40 { // any order of these
		m.on(2+i, lost(setTo("/a", fmt.Sprintf("%d.1", 2+i), 10, 0, 0)))
	}
	for i := range 12 { // shows none of them
		at := int64(20 + 2*i)
		m.on(1, syncTo(at), read("/a", fmt.Sprintf("nobody.%d", i), at, 10, at, int32(20+i)))
	}
	m.on(1, create("/b", "1.1", 90), setTo("/b", "1.2", 90, 91, 1), setTo("/b", "1.3", 90, 92, 3))
	v := checkers.Check(&m.h, checkers.Options{Search: 2 * time.Second})
	for _, r := range v.Results {
		if r.Checker == "registers" && (len(r.Undecided) != 1 || len(r.Violations) != 1) {
			t.Errorf("a violation in /b, and no time for /a:\n%s", v)
		}
	}
}

// manyLost returns a register with rounds of writes without a reply: some are
// read, some are overwritten before any client reads them, and some are never
// executed. Without the zxids, a search would have to try every order of the
// remaining ones.
func manyLost(rounds int) *made {
	m := newMade()
	m.on(1, create("/a", "1.0", 10))
	zxid, version := int64(10), int32(0)
	client := 2
	write := func() history.Op {
		client++
		return lost(setTo("/a", fmt.Sprintf("%d.1", client), 10, 0, 0))
	}
	for range rounds {
		m.on(client+1, write()) // never executed
		m.on(client+1, write()) // overwritten by
		m.on(client+1, write())
		zxid, version = zxid+3, version+2
		for range 5 {
			m.on(1, syncTo(zxid), read("/a", fmt.Sprintf("%d.1", client), zxid, 10, zxid, version))
		}
	}
	return m
}

// TestManyWritesWithoutReply checks that we can decide registers for which no search would
// finish, and find violations in them.
func TestManyWritesWithoutReply(t *testing.T) {
	t.Parallel()
	registers := func(m *made) *checkers.Result {
		for _, r := range checkers.Check(&m.h, checkers.Options{Search: time.Second}).Results {
			if r.Checker == "registers" {
				return r
			}
		}
		t.Fatal("registers are not checked")
		return nil
	}
	if r := registers(manyLost(30)); len(r.Undecided) > 0 || len(r.Violations) > 0 {
		t.Errorf("undecided %v, violated %v", r.Undecided, r.Violations)
	}
	m := manyLost(2) // and then a read of the past
	m.on(1, syncTo(17), read("/a", "5.1", 17, 10, 13, 2))
	if r := registers(m); len(r.Violations) != 1 {
		t.Errorf("a read of the past is not seen: %+v", r)
	}
	m = manyLost(1) // and then wrong zxids for an order that exists
	m.on(1, setTo("/a", "1.1", 10, 9, 3), setTo("/a", "1.2", 10, 8, 4))
	if r := registers(m); len(r.Violations) > 0 || len(r.Undecided) > 0 {
		t.Errorf("the zxids are trusted: %+v", r)
	}
}
