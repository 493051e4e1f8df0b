package checkers_test

import (
	"slices"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/checkers"
	"github.com/zkgo/zkgo/tests/kit/history"
)

// made is a handmade history, built step by step: each step is one second long
// and begins when the previous one has ended.
type made struct {
	h    history.History
	now  history.Time
	sent map[int]int
	seq  map[int]int
}

func newMade() *made { return &made{now: 1e9, sent: make(map[int]int), seq: make(map[int]int)} }

// on adds requests to a connection, one after the other. The session has the
// number of the connection.
func (m *made) on(conn int, ops ...history.Op) *made {
	for _, o := range ops {
		m.add(conn, o)
	}
	return m
}

func (m *made) add(conn int, o history.Op) *history.Op {
	m.sent[conn]++
	o.Client, o.Conn, o.Server, o.Sent = conn, conn, 1, m.sent[conn]
	if o.Session == 0 {
		o.Session = int64(conn)
	}
	o.Call = m.now
	m.now += 1e9
	if o.Return >= 0 { // not lost
		m.seq[conn]++
		o.Seq, o.Return = m.seq[conn], m.now
	} else {
		o.Return = 0
	}
	m.now++
	m.h.Ops = append(m.h.Ops, &o)
	return m.h.Ops[len(m.h.Ops)-1]
}

// event adds a notification.
func (m *made) event(conn int, typ proto.EventType, path string, zxid int64) *made {
	m.seq[conn]++
	m.h.Events = append(m.h.Events, &history.Event{Client: conn, Conn: conn, Session: int64(conn), Seq: m.seq[conn], At: m.now, Type: typ, Path: path, Zxid: zxid})
	return m
}

// session adds a change of a session.
func (m *made) session(conn int, id int64, c history.Change) *made {
	m.h.Sessions = append(m.h.Sessions, &history.Session{Client: conn, Conn: conn, Session: id, Change: c, Call: m.now, At: m.now + 1e8, Timeout: 30e9})
	m.now += 1e9
	return m
}

// hold adds a Hold of a client. Its session has the same number.
func (m *made) hold(client int, czxid, from, to int64) *made {
	m.h.Holds = append(m.h.Holds, &history.Hold{Client: client, Conn: client, Session: int64(client), Lock: "/l", Node: "/l/n" + string(rune('0'+client)), Czxid: czxid, From: from * 1e9, To: to * 1e9, Why: "release"})
	return m
}

// state adds the final state of a server.
func (m *made) state(server int, zxid int64, live []int64, nodes ...history.Node) *made {
	m.h.States = append(m.h.States, &history.State{Server: server, At: m.now, Zxid: zxid, Final: true, Live: live, Nodes: nodes})
	return m
}

func node(path, data string, st *history.Stat) history.Node {
	return history.Node{Path: path, Data: data, Stat: *st}
}

// stat returns the stat of a znode without children.
func stat(czxid, mzxid int64, version int32) *history.Stat {
	return &history.Stat{Czxid: czxid, Mzxid: mzxid, Pzxid: czxid, Version: version}
}

func owned(st *history.Stat, session int64) *history.Stat {
	st.Owner = session
	return st
}

// parent returns the stat of a znode after a change of its children.
func parent(czxid, pzxid int64, cversion int32) *history.Stat {
	return &history.Stat{Czxid: czxid, Mzxid: czxid, Pzxid: pzxid, Cversion: cversion}
}

func create(path, value string, zxid int64) history.Op {
	return history.Op{Op: proto.OpCreate2, Path: path, Created: path, Value: value, Zxid: zxid, Stat: stat(zxid, zxid, 0)}
}

func ephemeral(path, value string, zxid, session int64) history.Op {
	o := create(path, value, zxid)
	o.Mode, o.Stat = proto.ModeEphemeral, owned(o.Stat, session)
	return o
}

func sequential(path, created string, zxid int64) history.Op {
	o := create(path, created, zxid)
	o.Mode, o.Created = proto.ModePersistentSequential, created
	return o
}

func setTo(path, value string, czxid, zxid int64, version int32) history.Op {
	return history.Op{Op: proto.OpSetData, Path: path, Value: value, Version: -1, Zxid: zxid, Stat: stat(czxid, zxid, version)}
}

func read(path, data string, zxid, czxid, mzxid int64, version int32) history.Op {
	return history.Op{Op: proto.OpGetData, Path: path, Data: data, Zxid: zxid, Stat: stat(czxid, mzxid, version)}
}

func exists(path string, zxid int64, st *history.Stat) history.Op {
	o := history.Op{Op: proto.OpExists, Path: path, Zxid: zxid, Stat: st}
	if st == nil {
		o.Code = proto.ErrNoNode
	}
	return o
}

func list(path string, zxid int64, st *history.Stat, names ...string) history.Op {
	return history.Op{Op: proto.OpGetChildren2, Path: path, Zxid: zxid, Stat: st, Children: names}
}

func remove(path string, zxid int64) history.Op {
	return history.Op{Op: proto.OpDelete, Path: path, Version: -1, Zxid: zxid}
}

func syncTo(zxid int64) history.Op    { return history.Op{Op: proto.OpSync, Path: "/", Zxid: zxid} }
func closing(zxid int64) history.Op   { return history.Op{Op: proto.OpCloseSession, Zxid: zxid} }
func watched(o history.Op) history.Op { o.Watch = true; return o }
func linear(o history.Op) history.Op  { o.Linear = true; return o }

// refused returns a request that got an error reply.
func refused(o history.Op, code proto.Code) history.Op {
	o.Code, o.Stat, o.Created = code, nil, ""
	return o
}

// lost returns a request without a reply.
func lost(o history.Op) history.Op {
	return history.Op{Op: o.Op, Path: o.Path, Value: o.Value, Version: o.Version, Mode: o.Mode, Parts: o.Parts, Watches: o.Watches, Return: -1}
}

// handmade is a history and the checkers that find a violation in it.
type handmade struct {
	name string
	m    *made
	seen []string
}

func TestHandMadeHistories(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(madeFacts(), madeOrder(), madeSessions(), madeLocks(), madeWatches(), madeStates()) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := checkers.Check(&c.m.h, checkers.Options{})
			if got := v.Violated(); !slices.Equal(got, c.seen) {
				t.Errorf("violated %v, not %v:\n%s", got, c.seen, v)
			}
			for _, r := range v.Results {
				if len(r.Undecided) > 0 {
					t.Errorf("undecided: %v", r.Undecided)
				}
				for _, x := range r.Violations {
					if len(x.Around) == 0 {
						t.Errorf("%s: nothing of the history is shown", x.What)
					}
				}
			}
		})
	}
}
