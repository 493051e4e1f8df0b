package tree

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree/internal/arena"
)

// collecting runs the garbage collector continuously until the test ends.
func collecting(t *testing.T) {
	t.Helper()
	var ended sync.WaitGroup
	stop := make(chan struct{})
	ended.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	})
	t.Cleanup(func() {
		close(stop)
		ended.Wait()
	})
}

// litter allocates garbage of the sizes of nodes and their texts, to overwrite freed
// ones.
func litter() (n int) {
	for i := range 64 {
		b := bytes.Repeat([]byte{0xa5}, 16+8*(i%16))
		n += len(b)
	}
	return n
}

// A number doesn't keep a node alive, and we reuse slots. We should not lose a node or
// mistake it for another while nodes are created and deleted, while a multi is undone, and
// while we restore a snapshot that has children before their parents.
func TestCollectorFindsEveryNode(t *testing.T) {
	collecting(t)
	tree, tx := New(), &Txn{}
	apply := func(op proto.Op, req proto.Record) {
		t.Helper()
		tx.Zxid++
		tree.Apply(tx, op, req)
		litter()
	}
	create := func(path string) *proto.CreateRequest {
		return &proto.CreateRequest{Path: path, Data: []byte(strings.Repeat("d", 50)), ACL: proto.OpenACL()}
	}
	for i := range 3000 {
		dir := fmt.Sprintf("/d%d", i%7)
		apply(proto.OpCreate, create(dir))
		apply(proto.OpCreate, create(fmt.Sprintf("%s/n%d", dir, i)))
		if i%3 == 0 {
			apply(proto.OpDelete, &proto.DeleteRequest{Path: fmt.Sprintf("/d%d/n%d", (i/2)%7, i/2), Version: -1})
		}
		if i%5 == 0 { // the multi fails at its last operation
			apply(proto.OpMulti, &proto.MultiRequest{Ops: []proto.MultiOp{
				{Op: proto.OpCreate, Req: create(fmt.Sprintf("%s/m%d", dir, i))},
				{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: fmt.Sprintf("%s/n%d", dir, i), Version: -1}},
				{Op: proto.OpDelete, Req: &proto.DeleteRequest{Path: "/nowhere", Version: -1}},
			}})
		}
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	stored, digest := written(t, tree), tree.FullDigest()
	again, err := loaded(stored, 100)
	if err != nil {
		t.Fatal(err)
	}
	litter()
	if err := again.Check(); err != nil {
		t.Fatal(err)
	}
	if again.FullDigest() != digest {
		t.Errorf("loaded: %#x instead of %#x", again.FullDigest(), digest)
	}
}

// Only the loader refers to a child before its parent has been read.
func TestCollectorAndOrphans(t *testing.T) {
	collecting(t)
	source := New()
	nodes := []*Stored{}
	for i := range 2000 {
		for _, path := range []string{fmt.Sprintf("/p%d/q/r", i), fmt.Sprintf("/p%d/q", i), fmt.Sprintf("/p%d", i)} {
			nodes = append(nodes, &Stored{Path: path, Data: []byte(path), ACL: proto.OpenACL()})
		}
	}
	nodes = append(nodes, &Stored{Path: "/", ACL: proto.OpenACL()})
	err := source.Import(1, 0, func(int64) bool { return false }, func(yield func(*Stored, error) bool) {
		for part := range 3 { // all leaves, then their parents, then their grandparents
			for i := part; i < len(nodes); i += 3 {
				litter()
				if !yield(nodes[i], nil) {
					return
				}
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	litter()
	if err := source.Check(); err != nil {
		t.Fatal(err)
	}
	if got := source.CountDescendants(source.Get("/")); got != 6003 {
		t.Errorf("%d znodes", got)
	}
}

// extendCRC returns the same as crc32.Update.
func TestExtendCRC(t *testing.T) {
	t.Parallel()
	var b [statBlock]byte
	for i := range 1000 {
		s := arena.State{Czxid: int64(i) << 30, Mzxid: int64(i), Pzxid: -int64(i), Ctime: int64(i) * 7, Cversion: int32(i)}
		putStat(&s, &b, int64(i)<<8)
		crc := crc32.ChecksumIEEE(b[:i%statBlock])
		want := crc32.Update(crc, crc32.IEEETable, b[statPad:])
		if got := extendCRC(crc, &b); got != want {
			t.Fatalf("%d: %08x instead of %08x", i, got, want)
		}
	}
}
