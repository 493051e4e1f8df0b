package tree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// TestReplay: a transaction's numbers are results, and a change that doesn't fit is skipped.
func TestReplay(t *testing.T) {
	t.Parallel()
	tr := New()
	zxid := int64(100)
	replay := func(op proto.Op, changes ...Change) *Result {
		zxid++
		return tr.Replay(&Txn{Zxid: zxid, Time: zxid * 10, Session: 7, Policy: ExtendedTypes}, op, changes)
	}
	create := func(path string, cversion int32) Change {
		return Change{Op: proto.OpCreate, Path: path, Data: []byte("d"), ACL: proto.OpenACL(), Version: cversion}
	}
	stat := func(path string) (s proto.Stat) {
		if n := tr.Get(path); n != nil {
			n.Stat(&s)
		}
		return s
	}
	if r := replay(proto.OpCreate, create("/a", 5)); r.Path != "/a" || len(r.Events) != 2 || r.Stat.Czxid != 101 || r.Stat.Ctime != 1010 {
		t.Errorf("%+v", r)
	}
	if s := stat("/"); s.Cversion != 2*5-2 || s.Pzxid != 101 { // /zookeeper is the other child
		t.Errorf("%+v", s)
	}
	replay(proto.OpSetData, Change{Op: proto.OpSetData, Path: "/a", Data: []byte("new"), Version: 9})
	replay(proto.OpSetACL, Change{Op: proto.OpSetACL, Path: "/a", ACL: proto.OpenACL(), Version: 4})
	if s := stat("/a"); s.Version != 9 || s.Mzxid != 102 || s.Aversion != 4 || s.DataLength != 3 {
		t.Errorf("%+v", s)
	}
	eph := create("/a/e", 1)
	eph.Ephemeral = true
	replay(proto.OpCreate, eph)
	container := create("/a/c", 2)
	container.Op, container.Owner = proto.OpCreateContainer, containerOwner
	replay(proto.OpCreateContainer, container)
	if s := stat("/a/e"); s.EphemeralOwner != 7 || tr.EphemeralCount() != 1 || len(tr.containers) != 1 {
		t.Errorf("%+v", s)
	}
	r := replay(proto.OpMulti, create("/m", 6), Change{Op: proto.OpCheck, Path: "/m"}, Change{Op: proto.OpDelete, Path: "/a/c"})
	if b := r.AppendBody(nil); len(r.Multi) != 3 || r.Multi[0].Path != "/m" || len(b) == 0 || tr.Get("/a/c") != nil {
		t.Errorf("%+v", r)
	}
	if r := replay(proto.OpMulti, Change{Op: proto.OpError}, Change{Op: proto.OpError, Code: proto.ErrNoNode}); r.Code != proto.Ok || r.Multi[1].Code != proto.ErrNoNode || r.Multi[1].Op != proto.OpError {
		t.Errorf("%+v", r)
	}
	if r := replay(proto.OpError, Change{Op: proto.OpError, Code: proto.ErrBadVersion}); r.Code != proto.ErrBadVersion {
		t.Errorf("%+v", r)
	}
	before := tr.Digest()
	for _, c := range []Change{
		create("/none/x", 1), create("x", 1), create("/m", 2), // without a parent, invalid, existing
		{Op: proto.OpDelete, Path: "/a"}, {Op: proto.OpDelete, Path: "/none/x"}, {Op: proto.OpDelete, Path: "/zookeeper"}, {Op: proto.OpDelete, Path: "x"},
		{Op: proto.OpSetData, Path: "/none"}, {Op: proto.OpSetACL, Path: "/none"},
	} {
		if r := replay(c.Op, c); len(r.Events) > 0 || tr.Digest() != before {
			t.Errorf("%+v has an effect: %+v", c, r)
		}
	}
	replay(proto.OpDelete, Change{Op: proto.OpDelete, Path: "/m/gone"}) // ZooKeeper changes the parent
	if s := stat("/m"); s.Pzxid != zxid {
		t.Errorf("%+v", s)
	}
	replay(proto.OpCloseSession, Change{Op: proto.OpCloseSession})
	if tr.EphemeralCount() != 0 || tr.LastZxid() != zxid || tr.Check() != nil {
		t.Errorf("%d ephemerals at %d: %v", tr.EphemeralCount(), tr.LastZxid(), tr.Check())
	}
}

// TestReplayIsApply: what Apply does to one tree, Replay does to another that gets the results.
func TestReplayIsApply(t *testing.T) {
	t.Parallel()
	a, b := New(), New()
	for i := range 200 {
		tx := Txn{Zxid: int64(i + 1), Time: int64(i), Session: 3}
		path := fmt.Sprintf("/n%d", i%20)
		var op proto.Op
		var req proto.Record
		switch i % 3 {
		case 0:
			op, req = proto.OpCreate, &proto.CreateRequest{Path: path, Data: []byte(path), ACL: proto.OpenACL(), Flags: int32(i % 2)}
		case 1:
			op, req = proto.OpSetData, &proto.SetDataRequest{Path: path, Data: []byte(strings.Repeat("x", i)), Version: -1}
		default:
			op, req = proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1}
		}
		res := a.Apply(&tx, op, req)
		c := Change{Op: op, Path: path}
		switch q := req.(type) {
		case *proto.CreateRequest:
			c.Data, c.ACL, c.Ephemeral, c.Version = q.Data, q.ACL, q.Flags == 1, a.root.State().Cversion
		case *proto.SetDataRequest:
			c.Data, c.Version = q.Data, res.Stat.Version
		}
		if res.Code != proto.Ok {
			op, c = proto.OpError, Change{Op: proto.OpError, Code: res.Code}
		}
		code, events := res.Code, fmt.Sprint(len(res.Events))
		got := b.Replay(&tx, op, []Change{c})
		if got.Code != code || fmt.Sprint(len(got.Events)) != events || a.FullDigest() != b.FullDigest() {
			t.Fatalf("%d: %v of %s: %+v", i, op, path, got)
		}
	}
}

// TestReplayOfRecord: the changes that Apply records make another tree the same, whatever the
// transactions are.
func TestReplayOfRecord(t *testing.T) {
	t.Parallel()
	for seed := range int64(20) {
		g, a, b := newGenerator(500+seed), New(), New()
		for i := range 1500 {
			var changes []Change
			tx, op, req := g.next(a)
			tx.Record = &changes
			code := a.Apply(tx, op, req).Code
			if op == proto.OpCloseSession {
				changes = append(changes, Change{Op: op})
			}
			multi, _ := req.(*proto.MultiRequest)
			if refused := code != proto.Ok || multi != nil && len(multi.Ops) > len(changes); refused != (len(changes) == 0) && (multi == nil || len(multi.Ops) > 0) {
				t.Fatalf("seed %d, transaction %d, %v %s: code %v, %d changes", seed, i, op, describe(req), code, len(changes))
			}
			b.Replay(&Txn{Zxid: tx.Zxid, Time: tx.Time, Session: tx.Session, Policy: ExtendedTypes}, op, changes)
			if a.FullDigest() != b.FullDigest() || a.Digest() != b.Digest() {
				t.Fatalf("seed %d, transaction %d, %v %s: the trees differ after %+v", seed, i, op, describe(req), changes)
			}
		}
		if err := b.Check(); err != nil {
			t.Fatal(err)
		}
	}
}
