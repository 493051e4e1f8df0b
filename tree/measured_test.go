package tree

import (
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// We should update the usage of large subtrees for every change, including changes that a
// multi undoes.
func TestMeasuredSubtrees(t *testing.T) {
	t.Parallel()
	tree := filled(t, 40_000)
	create := func(path string) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpCreate, Req: &proto.CreateRequest{Path: path, Data: []byte("12345"), ACL: proto.OpenACL()}}
	}
	remove := func(path string) proto.MultiOp {
		return proto.MultiOp{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: path, Version: -1}}
	}
	do := func(ops ...proto.MultiOp) {
		tree.Apply(&Txn{Zxid: tree.LastZxid() + 1}, proto.OpMulti, &proto.MultiRequest{Ops: ops})
		if err := tree.Check(); err != nil {
			t.Fatal(err)
		}
	}
	const all, one = quotaPath + statsName, quotaPath + "/dir1" + statsName
	do(create(all), create(quotaPath+"/dir1"), create(one), remove(one))
	root, dir := tree.measured.subtrees["/"], tree.measured.subtrees["/dir1"]
	if len(tree.measured.subtrees) != 2 || root == nil || dir == nil {
		t.Fatalf("measured: %v", tree.measured.subtrees)
	}
	do(create("/dir1/x"), create("/dir1/x/y"), create("/dir10"), create("/dir1000"), create("/none/x"))
	do(create("/dir1/x"), create("/dir1/x/y"), create("/dir1000"), create(one), remove("/dir1/node101"),
		proto.MultiOp{Op: proto.OpSetData, Req: &proto.SetDataRequest{Path: "/dir1/x", Data: []byte("1"), Version: -1}})
	do(remove("/dir1/node201"), remove("/none"))
	if dir.count != 401 { // with /dir1 itself
		t.Errorf("%d nodes, want 401", dir.count)
	}
	do(remove(one), create(one))
	if got, want := string(tree.Get(one).Data()), fmt.Sprintf("count=%d,bytes=%d", dir.count, dir.bytes); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if tree.measured.subtrees["/"] != root || tree.measured.subtrees["/dir1"] != dir {
		t.Error("a subtree was measured again")
	}
	for i := 1; i < 200; i++ {
		tree.Apply(&Txn{Zxid: tree.LastZxid() + 1}, proto.OpDelete, &proto.DeleteRequest{Path: fmt.Sprintf("/dir1/node%d01", i), Version: -1})
	}
	if do(); tree.measured.subtrees["/dir1"] != nil {
		t.Error("a small subtree is kept")
	}
	tree.measured.changes = keepMeasured
	if do(create("/dir1/z")); len(tree.measured.subtrees) != 0 {
		t.Error("the subtrees are kept although no stats node is created any more")
	}
}

// BenchmarkStats creates and deletes a stats node for 100,000 nodes.
func BenchmarkStats(b *testing.B) {
	t := filled(b, 100_000)
	tx := &Txn{Zxid: t.LastZxid()}
	const stats = quotaPath + statsName
	for b.Loop() {
		tx.Zxid++
		t.Apply(tx, proto.OpCreate, &proto.CreateRequest{Path: stats, ACL: proto.OpenACL()})
		t.Apply(tx, proto.OpDelete, &proto.DeleteRequest{Path: stats, Version: -1})
	}
}
