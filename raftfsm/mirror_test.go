package raftfsm

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/zktxn"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// oldSession is a session of the mirrored ensemble.
const oldSession = int64(1<<56 | 77)

// mirrorOf returns the commands that install the state of an ensemble.
func mirrorOf(t testing.TB, tr *tree.Tree, sessions *session.Table) []command.Command {
	t.Helper()
	cmds := restoreOf(5, bytesOf(t, tr), 10_000)
	cmds, commit := cmds[:len(cmds)-1], apply.RestoreCommit{}
	for _, c := range cmds[1:] {
		piece := c.Body[12:]
		commit.Chunks, commit.Bytes, commit.Sum = commit.Chunks+1, commit.Bytes+int64(len(piece)), apply.PieceSum(commit.Sum, piece)
	}
	head := binary.BigEndian.AppendUint64(nil, 5)
	rows := sessions.AppendTo(nil)
	body := append(binary.BigEndian.AppendUint32(bytes.Clone(head), commit.Chunks), rows...)
	commit.Chunks, commit.Bytes, commit.Sum = commit.Chunks+1, commit.Bytes+int64(len(rows)), apply.PieceSum(commit.Sum, rows)
	return append(cmds, command.Command{Kind: command.KindRestoreSessions, Body: body}, command.Command{Kind: command.KindMirrorBegin, Body: commit.Append(bytes.Clone(head))})
}

// ofEnsemble encodes transactions like the ensemble's leader.
type ofEnsemble struct{ prev int64 }

func (e *ofEnsemble) command(txns ...[]byte) command.Command {
	body := binary.BigEndian.AppendUint64(nil, uint64(e.prev))
	for _, b := range txns {
		body = apply.AppendMirrorTxn(body, b)
	}
	e.prev += int64(len(txns))
	return command.Command{Kind: command.KindMirrorTxns, Body: body}
}

func txnHead(zxid, session int64, cxid int32, op proto.Op) []byte {
	b := proto.AppendInt(proto.AppendLong(nil, session), cxid)
	return proto.AppendInt(proto.AppendLong(proto.AppendLong(b, zxid), 1_000_000), int32(op))
}

func createTxn(zxid, session int64, cxid int32, path string, ephemeral bool, cversion int32) []byte {
	b := proto.AppendString(txnHead(zxid, session, cxid, proto.OpCreate2), path)
	b = proto.AppendACLs(proto.AppendBuffer(b, []byte("data")), proto.OpenACL())
	return proto.AppendInt(proto.AppendBool(b, ephemeral), cversion)
}

func withDigest(txn []byte, digest uint64) []byte {
	return proto.AppendLong(proto.AppendInt(txn, zktxn.DigestVersion), int64(digest))
}

// following returns a machine that follows an ensemble with the znodes of treeOf and a session.
func following(t *testing.T) (*machineCopy, *leader, *ofEnsemble) {
	t.Helper()
	r := newReplica(t)
	l := newLeader(5, command.FlagConfig)
	l.start.Config = []byte("server.1=a:1:2:participant\nserver.2=b:1:2:participant\nversion=0")
	r.mustFeed(t, l.begin())
	tr, sessions := treeOf(t, 7, 3), session.NewTable()
	sessions.Put(session.Session{ID: oldSession, Timeout: 6000, Password: zktxn.Password(oldSession), Gen: 1})
	zxid := tr.LastZxid()
	r.mustFeed(t, l.batch(mirrorOf(t, tr, sessions)...))
	if r.Mirror.Phase != mirrored.Following || r.Tree.LastZxid() != zxid || r.Sessions.Len() != 1 || !r.exists("/r/3") {
		t.Fatalf("%+v at %#x with %d sessions", r.Mirror, r.Tree.LastZxid(), r.Sessions.Len())
	}
	return r, l, &ofEnsemble{zxid}
}

// TestMirrorFollows: each transaction is applied once and in its order, whatever a leader
// of ours proposes, and no other change gets a zxid.
func TestMirrorFollows(t *testing.T) {
	t.Parallel()
	r, l, e := following(t)
	z := e.prev
	one := e.command(createTxn(z+1, oldSession, 1, "/a", true, 2))
	two := e.command(createTxn(z+2, oldSession, 2, "/a2", false, 3), txnHead(z+3, oldSession, 3, proto.OpError))
	three := e.command(append(txnHead(z+4, 99, 0, proto.OpCreateSession), 0, 0, 0x10, 0))
	r.mustFeed(t, l.batch(two)) // too early
	if r.Tree.LastZxid() != z {
		t.Fatal("a transaction was left out")
	}
	r.mustFeed(t, l.batch(one, one))
	if r.Tree.LastZxid() != z+1 || r.Tree.EphemeralCount() != 1 {
		t.Fatalf("zxid %#x, %d ephemerals", r.Tree.LastZxid(), r.Tree.EphemeralCount())
	}
	two = (&ofEnsemble{z + 1}).command(createTxn(z+2, oldSession, 2, "/a2", false, 3), append(txnHead(z+3, oldSession, 3, proto.OpError), 0xff, 0xff, 0xff, 0x9a))
	r.mustFeed(t, l.batch(two, three))
	l = newLeader(6, 0)
	r.mustFeed(t, l.begin())
	r.mustFeed(t, l.batch(one, three, command.Command{Kind: command.KindExpire, Session: oldSession, Gen: 1}))
	if r.Tree.LastZxid() != z+4 || r.Sessions.Len() != 2 || !r.exists("/a2") {
		t.Errorf("zxid %#x, %d sessions", r.Tree.LastZxid(), r.Sessions.Len())
	}
	if row, _ := r.Sessions.Get(99); row.Timeout != 4096 || row.Password != zktxn.Password(99) {
		t.Errorf("%+v", row)
	}
	var st proto.Stat
	r.Tree.Get("/a").Stat(&st)
	if st.Czxid != z+1 || st.Ctime != 1_000_000 || st.EphemeralOwner != oldSession {
		t.Errorf("%+v", st)
	}
	r.Tree.Get("/").Stat(&st)
	if st.Pzxid != z+2 {
		t.Errorf("%+v", st)
	}
	rows := r.Rows
	if r.SumRows(); rows != r.Rows {
		t.Error("the digest of the sessions is not kept up to date")
	}
}

// TestMirrorDigest: a digest that differs, and a transaction that can't be read, break the
// mirror, and nothing repairs it.
func TestMirrorDigest(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string][]byte{
		"create2 /wrong": withDigest(createTxn(0, oldSession, 2, "/wrong", false, 3), 1),
		"unknown":        txnHead(0, 1, 1, 77),
	} {
		r, l, e := following(t)
		z := e.prev
		other := treeOf(t, 7, 3)
		other.Replay(&tree.Txn{Zxid: z + 1, Time: 1_000_000, Session: oldSession}, proto.OpCreate2, []tree.Change{{Op: proto.OpCreate2, Path: "/right", Data: []byte("data"), ACL: proto.OpenACL(), Version: 2}})
		binary.BigEndian.PutUint64(wrong[12:], uint64(z+2))
		r.mustFeed(t, l.batch(e.command(withDigest(createTxn(z+1, oldSession, 1, "/right", false, 2), other.Digest()))))
		if r.Mirror.Broken != "" || r.Numbers.Compared.Load() != 1 {
			t.Fatalf("%+v", r.Mirror)
		}
		r.mustFeed(t, l.batch(e.command(wrong), e.command(createTxn(z+3, oldSession, 3, "/after", false, 4))))
		if !strings.Contains(r.Mirror.Broken, name) || !strings.Contains(r.Mirror.Broken, fmt.Sprintf("%x", z+2)) || r.exists("/after") {
			t.Errorf("%s: %+v", name, r.Mirror)
		}
		r.mustFeed(t, l.batch(endOf(r.Tree.LastZxid())))
		if r.Mirror.Phase != mirrored.Following {
			t.Error("a broken mirror was ended")
		}
	}
}

func endOf(zxid int64) command.Command {
	return command.Command{Kind: command.KindMirrorEnd, Body: binary.BigEndian.AppendUint64(nil, uint64(zxid))}
}

func phaseOf(p mirrored.Phase) command.Command {
	return command.Command{Kind: command.KindMirrorPhase, Body: []byte{byte(p)}}
}

// TestMirrorEnds: the servers replace the ensemble at the right zxid only, in a new epoch
// and with the sessions. New sessions get ZooKeeper's passwords until the phase is Done.
func TestMirrorEnds(t *testing.T) {
	t.Parallel()
	r, l, e := following(t)
	z := e.prev
	r.node.incarnation.Store(5) // make it the leader, so that it tracks deadlines
	r.node.mail.take()
	r.mustFeed(t, l.batch(endOf(z-1), endOf(z)))
	if r.Mirror.Phase != mirrored.Open || r.Mirror.Zxid != z || r.Tree.LastZxid() != 8<<32 {
		t.Fatalf("%+v at %#x", r.Mirror, r.Tree.LastZxid())
	}
	attached := slices.ContainsFunc(r.node.mail.take(), func(e event) bool {
		return e.kind == evState && e.state.Kind == apply.Attached && e.state.Session == oldSession
	})
	if !attached {
		t.Error("the leader doesn't know the session")
	}
	if text := string(r.Tree.Get(tree.ConfigPath).Data()); !strings.Contains(text, "server.2=b") {
		t.Errorf("the list of servers is %q", text)
	}
	again := attachCommand()
	again.Session, again.Password = oldSession, zktxn.Password(oldSession)
	r.mustFeed(t, l.batch(attachCommand(), again))
	done := r.recorder.applied[len(r.recorder.applied)-2:]
	if a := done[0].attached; a.Password != zktxn.Password(a.ID) || done[1].attached.Gen != 2 {
		t.Errorf("%+v", done)
	}
	own := done[0].attached
	r.mustFeed(t, l.batch(create(own, "/own", 0), phaseOf(mirrored.Fenced), create(own, "/fenced", 0), phaseOf(mirrored.Done), phaseOf(mirrored.Open), create(own, "/open", 0)))
	if !r.exists("/own") || r.exists("/fenced") || !r.exists("/open") {
		t.Error("a fenced server takes writes, or an open one doesn't")
	}
	r.mustFeed(t, l.batch(phaseOf(mirrored.Done), attachCommand(), phaseOf(mirrored.Open)))
	if a := r.recorder.applied[len(r.recorder.applied)-1].attached; r.Mirror.Phase != mirrored.Done || a.Password == zktxn.Password(a.ID) {
		t.Errorf("%+v %+v", r.Mirror, a)
	}
	r.mustFeed(t, l.batch(mirrorOf(t, treeOf(t, 20, 3), session.NewTable())...))
	if r.Mirror.Phase != mirrored.Done || !r.exists("/own") {
		t.Error("a second mirror has replaced the state")
	}
}

// TestMirrorSparesAState: a mirror never replaces a state of the servers' own.
func TestMirrorSparesAState(t *testing.T) {
	t.Parallel()
	r, l, _ := inhabited(t)
	r.mustFeed(t, l.batch(mirrorOf(t, treeOf(t, 20, 3), session.NewTable())...))
	if r.Mirror.Phase != mirrored.None || !r.exists("/old") {
		t.Errorf("%+v", r.Mirror)
	}
}

// TestMirrorInSnapshot: a snapshot contains the mirror.
func TestMirrorInSnapshot(t *testing.T) {
	t.Parallel()
	r, l, e := following(t)
	r.mustFeed(t, l.batch(e.command(withDigest(createTxn(e.prev+1, oldSession, 1, "/wrong", false, 2), 1))))
	var sink sinkBuffer
	snap, err := r.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if err := snap.Persist(&sink); err != nil {
		t.Fatal(err)
	}
	snap.Release()
	back := newReplica(t)
	if err := back.Restore(&sink); err != nil {
		t.Fatal(err)
	}
	if back.Mirror != r.Mirror || back.Mirror.Broken == "" {
		t.Errorf("%+v instead of %+v", back.Mirror, r.Mirror)
	}
}

// sinkBuffer is a raft.SnapshotSink in memory.
type sinkBuffer struct{ bytes.Buffer }

func (*sinkBuffer) ID() string    { return "snapshot" }
func (*sinkBuffer) Cancel() error { return nil }
func (*sinkBuffer) Close() error  { return nil }

func markOf(m mirrored.Mark) command.Command {
	return command.Command{Kind: command.KindMirrorMark, Body: m.Append(nil)}
}

// told collects the outcomes of commands.
type told []string

func (w *told) waiter(name string) command.Waiter {
	return apply.WaiterFunc(func(a *Applied) {
		path := ""
		if a.Result != nil {
			path = a.Result.Path
		}
		*w = append(*w, strings.TrimSpace(fmt.Sprintf("%s %v %d %s", name, a.Op, a.Code, path)))
	})
}

// ownCommands applies commands as if this server had proposed them, one at a time.
type ownCommands struct {
	*machineCopy
	count uint64
}

func (o *ownCommands) apply(t *testing.T, l *leader, c command.Command) {
	t.Helper()
	local := o.node.local
	local.Server, local.Nonce = 2, 9
	defer func() { local.Nonce = 0 }()
	o.count++
	if err := local.Propose(&c, true); err != nil {
		t.Fatal(err)
	}
	if _, n := local.Take(nil, 1); n != 1 {
		t.Fatalf("%d commands were taken", n)
	}
	next := l.first
	l.first = o.count
	o.mustFeed(t, l.batch(c))
	l.first = next
}

// TestMirrorClients: clients' requests go to the ensemble, and its transactions are the
// answers.
func TestMirrorClients(t *testing.T) {
	t.Parallel()
	r, l, e := following(t)
	r.node.incarnation.Store(5)
	r.Machine.Incarnation = 5
	var got told
	own := &ownCommands{machineCopy: r}
	z := e.prev
	row, _ := r.Sessions.Get(oldSession)
	want := func(name string, c command.Command) command.Command {
		c.Waiter = got.waiter(name)
		return c
	}
	expect := func(lines ...string) {
		t.Helper()
		if !slices.Equal(got, lines) {
			t.Errorf("%q, want %q", got, lines)
		}
		got = nil
	}
	own.apply(t, l, want("early", create(row, "/early", 0)))
	expect("early create2 -118")
	r.mustFeed(t, l.batch(markOf(mirrored.Mark{InSync: true})))
	r.node.mail.take()
	own.apply(t, l, want("create", create(row, "/c", 0)))
	own.apply(t, l, want("sync", command.Command{Kind: command.KindSync, Session: oldSession, Body: []byte("path")}))
	own.apply(t, l, want("reconfig", command.Command{Kind: command.KindRequest, Session: oldSession, Gen: 1, Op: proto.OpReconfig, Body: (&proto.ReconfigRequest{CurConfigID: -1}).Append(nil)}))
	expect("reconfig reconfig -123")
	var passed []*mirrored.Forward
	for _, ev := range r.node.mail.take() {
		if ev.kind == evState && ev.state.Kind == apply.Forwarded {
			passed = append(passed, ev.state.Forward)
		}
	}
	if len(passed) != 2 || passed[0].Session != oldSession || passed[1].Op != proto.OpSync || passed[0].Cxid == passed[1].Cxid {
		t.Fatalf("%+v", passed)
	}
	if r.Tree.LastZxid() != z || r.exists("/c") {
		t.Error("a request has an effect of its own")
	}
	r.mustFeed(t, l.batch(e.command(createTxn(z+1, oldSession, passed[0].Cxid, "/c", false, 2))))
	expect("create create2 0 /c")
	r.mustFeed(t, l.batch(markOf(mirrored.Mark{InSync: true, Answer: mirrored.Answer{Session: oldSession, Cxid: passed[1].Cxid}})))
	expect("sync sync 0")

	own.apply(t, l, want("new", attachCommand()))
	events := r.node.mail.take()
	f := events[len(events)-1].state.Forward
	r.mustFeed(t, l.batch(e.command(append(txnHead(z+2, f.Session, f.Cxid, proto.OpCreateSession), 0, 0, 0x10, 0))))
	expect("new createSession 0")
	s, ok := r.Sessions.Get(f.Session)
	if !ok || f.Session>>56 != mirrored.Sessions || s.Password != zktxn.Password(f.Session) {
		t.Errorf("session %#x: %+v", f.Session, s)
	}
	again := attachCommand()
	again.Session, again.Password = oldSession, row.Password
	// attach returns the sync that must be answered before the client gets its session.
	attach := func(name string) int32 {
		t.Helper()
		r.node.mail.take()
		own.apply(t, l, want(name, again))
		var passed []*mirrored.Forward
		for _, ev := range r.node.mail.take() {
			if ev.kind == evState && ev.state.Kind == apply.Forwarded {
				passed = append(passed, ev.state.Forward)
			}
		}
		if len(passed) != 2 || passed[0].Cxid != 0 || passed[0].Op != proto.OpCreateSession || passed[1].Op != proto.OpSync || !bytes.Equal(passed[1].Body, (&proto.SyncRequest{Path: "/"}).Append(nil)) {
			t.Fatalf("%+v", passed)
		}
		return passed[1].Cxid
	}
	synced := func(cxid int32) {
		t.Helper()
		r.mustFeed(t, l.batch(markOf(mirrored.Mark{InSync: true, Answer: mirrored.Answer{Session: oldSession, Cxid: cxid}})))
	}
	first := attach("again")
	own.apply(t, l, want("moved", create(row, "/moved", 0)))
	expect("moved create2 -118")
	synced(first)
	expect("again createSession 0")
	first, second := attach("displaced"), attach("last")
	synced(first)
	synced(second)
	expect("displaced createSession -118", "last createSession 0")

	row.Gen += 3
	own.apply(t, l, want("lost", create(row, "/lost", 0)))
	r.mustFeed(t, l.batch(markOf(mirrored.Mark{})))
	expect("lost create2 -118")
	r.mustFeed(t, l.batch(markOf(mirrored.Mark{InSync: true})))
	ended := attach("ended")
	r.mustFeed(t, l.batch(e.command(txnHead(z+3, oldSession, 0, proto.OpCloseSession))))
	synced(ended)
	expect("ended createSession -112")
	own.apply(t, l, want("deposed", create(s, "/deposed", 0)))
	l = newLeader(6, 0)
	r.mustFeed(t, l.begin())
	expect("deposed create2 -118")
}
