package tree

import (
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// TestCopyAndRecall: whatever happened to the tree, Recall should restore its old content,
// any number of times, and leave the tree consistent.
func TestCopyAndRecall(t *testing.T) {
	t.Parallel()
	tr := New()
	zxid := int64(0)
	do := func(session int64, op proto.Op, req proto.Record) {
		t.Helper()
		zxid++
		tx := Txn{Zxid: zxid, Time: zxid, Session: session, Policy: ExtendedTypes, IDs: []proto.ID{{Scheme: "super"}}}
		if res := tr.Apply(&tx, op, req); res.Code != proto.Ok {
			t.Fatal(op, res.Code)
		}
	}
	create := func(path string, flags proto.CreateMode, acl []proto.ACL) {
		t.Helper()
		op := proto.OpCreate
		if flags == proto.ModeContainer {
			op = proto.OpCreateContainer
		}
		do(7, op, &proto.CreateRequest{Path: path, Data: []byte(path), ACL: acl, Flags: int32(flags)})
	}
	create("/a", proto.ModePersistent, openACL())
	for i := range 300 {
		create(fmt.Sprint("/a/", i), proto.ModePersistent, openACL())
	}
	create("/e", proto.ModeEphemeral, openACL())
	create("/c", proto.ModeContainer, readACL())
	create("/zookeeper/quota/a", proto.ModePersistent, openACL())
	create("/zookeeper/quota/a/zookeeper_limits", proto.ModePersistent, openACL())
	c, want, order := tr.Copy(), tr.totals, string(tr.AppendChildren(nil, tr.Get("/a")))
	for round := range 3 {
		snap := tr.Snapshot()
		create(fmt.Sprint("/new", round), proto.ModePersistent, readACL())
		for i := range 300 {
			if i%3 != round {
				do(7, proto.OpDelete, &proto.DeleteRequest{Path: fmt.Sprint("/a/", i), Version: -1})
			}
		}
		create(fmt.Sprintf("/a/%d/x", round), proto.ModePersistent, openACL())
		do(7, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: []byte("other"), Version: 0})
		do(7, proto.OpCloseSession, nil)
		do(7, proto.OpDelete, &proto.DeleteRequest{Path: "/c", Version: -1})
		if tr.Get("/e") != nil || tr.Get("/c") != nil {
			t.Fatal("nothing happens")
		}
		tr.Recall(c)
		if err := tr.Check(); err != nil {
			t.Fatal(err)
		}
		if tr.totals != want || tr.LastZxid() != zxid || tr.Get(fmt.Sprintf("/a/%d/x", round)) != nil || string(tr.Get("/a").Data()) != "/a" {
			t.Errorf("round %d: %+v at %d, want %+v at %d", round, tr.totals, tr.LastZxid(), want, zxid)
		}
		if got := string(tr.AppendChildren(nil, tr.Get("/a"))); got != order {
			t.Error("the children come in another order")
		}
		if _, _, err := snap.collect(nil, 1); err == nil {
			t.Error("a snapshot of what is no more can be written")
		}
		snap.Release()
	}
}

func BenchmarkRecall1000(b *testing.B) {
	tr := New()
	for i := range 1000 {
		path := fmt.Sprintf("/a%d", i/10)
		if i%10 != 0 {
			path = fmt.Sprintf("/a%d/b%d", i/10, i)
		}
		tr.Apply(&Txn{Zxid: int64(i) + 1}, proto.OpCreate, &proto.CreateRequest{Path: path, Data: []byte("some data"), ACL: openACL()})
	}
	if tr.NodeCount() < 1000 {
		b.Fatal(tr.NodeCount())
	}
	c := tr.Copy()
	b.ReportAllocs()
	for b.Loop() {
		tr.Recall(c)
	}
}
