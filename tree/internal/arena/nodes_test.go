package arena

import (
	"math/rand"
	"slices"
	"testing"
	"unsafe"
)

// mark makes n a node that the test can identify.
func mark(n *Node, czxid int64) {
	n.state.Text, n.state.Czxid = NewText(Persistent, 0, "/x", nil), czxid
}

// TestNodes compares nodes with a map: we should not assign a number twice, move a node,
// lose one, or leave one over.
func TestNodes(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewSource(11))
	x := new(nodes)
	type kept struct {
		n     *Node
		czxid int64
	}
	want := map[Number]kept{}
	peak := 0
	for i := range int64(60_000) {
		growing := i/10_000%2 == 0
		if len(want) == 0 || g.Intn(4) > 0 == growing {
			n := x.take()
			if _, twice := want[n.number]; twice || n.number == None || n.state.ACL != nil || n.parent != None || n.kids != nil || n.state.first != nil {
				t.Fatalf("%+v was given, and there %v", n, twice)
			}
			mark(n, i)
			want[n.number] = kept{n, i}
			peak = max(peak, len(x.blocks))
			continue
		}
		for num, k := range want { // any one
			x.Vacate(k.n)
			delete(want, num)
			break
		}
	}
	if err := x.check(); err != nil {
		t.Fatal(err)
	}
	last, seen := None, 0
	for n := range x.All {
		if k := want[n.number]; k.n != n || k.czxid != n.state.Czxid || x.At(n.number) != n || n.number <= last {
			t.Fatalf("%d after %d: %+v, want %+v", n.number, last, n, k)
		}
		last = n.number
		seen++
	}
	if seen != len(want) || peak < 5 {
		t.Errorf("%d nodes instead of %d, in up to %d blocks", seen, len(want), peak)
	}
	for _, k := range want {
		x.Vacate(k.n)
	}
	for range x.All {
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
		x.Vacate(n)
	}); n > 1 { // for the text
		t.Errorf("%v allocations", n)
	}
	if len(x.blocks) != 2 {
		t.Errorf("%d blocks", len(x.blocks))
	}
}

// A node costs little more than its path and data. The size of a block is a multiple of the allocator's page size, so None is wasted.
func TestBlockSize(t *testing.T) {
	t.Parallel()
	if size := unsafe.Sizeof(Node{}); size != 96 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("a Node has %d bytes", size)
	}
	if size := unsafe.Sizeof(slot{}); size*pageSlots != 4096 {
		t.Errorf("a slot has %d bytes", size)
	}
	if size := unsafe.Sizeof([blockSize]Node{}); size%8192 != 0 || size <= 32768 {
		t.Errorf("a block has %d bytes", size)
	}
}

// become makes a correct copy, whatever was in the memory that it reuses.
func TestNodesBecome(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewSource(12))
	shuffle := func(x *nodes, steps int) {
		for i := range steps {
			if all := slices.Collect(x.All); len(all) > 0 && g.Intn(100) < 45 {
				x.Vacate(all[g.Intn(len(all))])
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
		for n := range from.All { // leaves vacant slots and released blocks
			if n.number/blockSize == 1 || g.Intn(2) == 0 {
				from.Vacate(n)
			}
		}
		shuffle(from, 50)
		to.become(from)
		if err := to.check(); err != nil {
			t.Fatal(err)
		}
		a, b := slices.Collect(from.All), slices.Collect(to.All)
		if !slices.EqualFunc(a, b, func(a, b *Node) bool { return a != b && *a == *b }) {
			t.Fatalf("%d nodes become %d, or others", len(a), len(b))
		}
		shuffle(to, 300)
		if c := slices.Collect(from.All); !slices.Equal(a, c) || to.check() != nil || from.check() != nil {
			t.Fatal("the two are one")
		}
	}
}
