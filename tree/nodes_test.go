package tree

import (
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/zkgo/zkgo/proto"
)

// mark makes n a node that the test can identify.
func mark(n *Node, czxid int64) {
	n.text, n.czxid = newText(persistent, 0, "/x", nil), czxid
}

// TestNodes compares nodes with a map: we should not assign a number twice, move a node,
// lose one, or leave one over.
func TestNodes(t *testing.T) {
	t.Parallel()
	g := newGenerator(11)
	x := new(nodes)
	type kept struct {
		n     *Node
		czxid int64
	}
	want := map[number]kept{}
	peak := 0
	for i := range int64(60_000) {
		growing := i/10_000%2 == 0
		if len(want) == 0 || g.Intn(4) > 0 == growing {
			n := x.take()
			if _, twice := want[n.number]; twice || n.number == none || n.acl != nil || n.parent != none || n.kids != nil || n.first != nil {
				t.Fatalf("%+v was given, and there %v", n, twice)
			}
			mark(n, i)
			want[n.number] = kept{n, i}
			peak = max(peak, len(x.blocks))
			continue
		}
		for num, k := range want { // any one of them
			x.vacate(k.n)
			delete(want, num)
			break
		}
	}
	if err := x.check(); err != nil {
		t.Fatal(err)
	}
	last, seen := none, 0
	for n := range x.all {
		if k := want[n.number]; k.n != n || k.czxid != n.czxid || x.at(n.number) != n || n.number <= last {
			t.Fatalf("%d behind %d: %+v, want %+v", n.number, last, n, k)
		}
		last = n.number
		seen++
	}
	if seen != len(want) || peak < 5 {
		t.Errorf("%d nodes instead of %d, in up to %d blocks", seen, len(want), peak)
	}
	for _, k := range want {
		x.vacate(k.n)
	}
	for range x.all {
		t.Fatal("a node is left")
	}
	if err := x.check(); err != nil {
		t.Fatal(err)
	}
	if blocks := len(x.blocks) - len(x.given); blocks != 1 || len(x.open) != 1 {
		t.Errorf("no node needs %d blocks, %d of them with room", blocks, len(x.open))
	}
}

// Creating and deleting a node repeatedly at the end of a block should not allocate a block
// each time.
func TestNodesAtTheEndOfABlock(t *testing.T) {
	x := new(nodes)
	for range blockSize - 1 {
		mark(x.take(), 1)
	}
	if n := testing.AllocsPerRun(100, func() {
		n := x.take()
		mark(n, 2)
		x.vacate(n)
	}); n > 1 { // for the text
		t.Errorf("%v allocations", n)
	}
	if len(x.blocks) != 2 {
		t.Errorf("%d blocks", len(x.blocks))
	}
}

// The size of a block should be a multiple of the allocator's page size, so that we waste
// no memory.
func TestBlockSize(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof([blockSize]Node{}); size%8192 != 0 || size <= 32768 {
		t.Errorf("a block has %d bytes", size)
	}
}

// The memory of deleted nodes should be free again, for the tree and for the rest of the
// process.
func TestDeletedNodesAreGivenBack(t *testing.T) {
	const n = 100_000
	before := heap()
	tree := filled(t, n)
	full, blocks := heap()-before, len(tree.nodes.blocks)
	paths := make([]string, 0, n)
	for n := range tree.nodes.all {
		if n.NumChildren() == 0 && n.Path() != ConfigPath && n.Path() != quotaPath {
			paths = append(paths, n.Path())
		}
	}
	for _, path := range paths {
		do(t, tree, proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1})
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	clear(paths)
	if left := heap() - before; left > full/10 {
		t.Errorf("%d bytes of %d are still there", left, full)
	}
	for i := range n {
		do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: "/dir1/again", Flags: int32(proto.ModePersistentSequential), ACL: proto.OpenACL()})
		if i%5000 == 0 {
			runtime.GC()
		}
	}
	if got := len(tree.nodes.blocks); got > blocks+1 {
		t.Errorf("%d blocks where as many nodes had %d", got, blocks)
	}
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
}

// become should make a correct copy, whatever was in the memory that it reuses.
func TestNodesBecome(t *testing.T) {
	t.Parallel()
	g := newGenerator(12)
	shuffle := func(x *nodes, steps int) {
		for i := range steps {
			if all := slices.Collect(x.all); len(all) > 0 && g.Intn(100) < 45 {
				x.vacate(all[g.Intn(len(all))])
			} else {
				mark(x.take(), int64(i)+1)
			}
		}
	}
	to := new(nodes)
	for range 20 {
		from := new(nodes)
		for range g.Intn(4) * blockSize {
			mark(from.take(), 7)
		}
		for n := range from.all { // leaves vacant slots and released blocks
			if n.number/blockSize == 1 || g.Intn(2) == 0 {
				from.vacate(n)
			}
		}
		shuffle(from, 50)
		to.become(from)
		if err := to.check(); err != nil {
			t.Fatal(err)
		}
		a, b := slices.Collect(from.all), slices.Collect(to.all)
		if !slices.EqualFunc(a, b, func(a, b *Node) bool { return a != b && *a == *b }) {
			t.Fatalf("%d nodes become %d, or others", len(a), len(b))
		}
		shuffle(to, 300)
		if c := slices.Collect(from.all); !slices.Equal(a, c) || to.check() != nil || from.check() != nil {
			t.Fatal("the two are one")
		}
	}
}
