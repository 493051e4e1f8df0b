package tree

import (
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// A step should visit a bounded number of nodes, however many there are.
func TestCensusStep(t *testing.T) {
	t.Parallel()
	tree := filled(t, 20_000)
	for path, want := range map[string]int{"/dir0": 199, "/zookeeper": 2, "/dir0/node100": 0, "/": tree.NodeCount() - 2} {
		c := tree.Census(tree.Get(path))
		for c.Step() {
		}
		if c.Count() != want || want != tree.CountDescendants(tree.Get(path)) {
			t.Errorf("%s: %d, want %d", path, c.Count(), want)
		}
	}
	c := tree.Census(tree.Get("/"))
	c.count, c.stack = 0, append(c.stack, tree.root.Children()...) // as for another node
	steps := 1
	for before := 0; c.Step(); steps++ {
		if c.Count()-before > censusStep {
			t.Errorf("%d nodes in one step", c.Count()-before)
		}
		before = c.Count()
	}
	if want := tree.NodeCount() - 2; steps != want/censusStep+1 || c.Count() != want {
		t.Errorf("%d nodes in %d steps, want %d", c.Count(), steps, want)
	}
}

// Changes between two steps: we should count nodes that stay once, and new nodes not at
// all.
func TestCensusDuringChanges(t *testing.T) {
	t.Parallel()
	tree := New()
	const kids, steps = 3 * censusStep, 2
	create := func(format string, from, to int) {
		for i := range to - from {
			do(t, tree, proto.OpCreate, &proto.CreateRequest{Path: fmt.Sprintf(format, from+i), ACL: proto.OpenACL()})
		}
	}
	create("/%d", 0, 1)
	create("/0/kid%d", 0, kids)
	create("/0/kid0/below%d", 0, 10) // kid0 is visited last
	c := tree.Census(tree.Get("/0"))
	for range steps {
		if !c.Step() {
			t.Fatal("no nodes are left")
		}
	}
	const gone = 100
	for i := range gone { // not visited yet
		do(t, tree, proto.OpDelete, &proto.DeleteRequest{Path: fmt.Sprintf("/0/kid%d", 1+i), Version: -1})
	}
	create("/0/kid0/late%d", 0, gone) // reuses their numbers
	create("/0/kid0/late0/%d", 0, 10)
	for c.Step() {
	}
	if want := kids - gone + 10; c.Count() != want {
		t.Errorf("%d nodes, want %d", c.Count(), want)
	}
}

// If the tree is replaced or loses whole blocks of nodes, the census should end.
func TestCensusOfAReplacedTree(t *testing.T) {
	t.Parallel()
	tree := filled(t, 20_000)
	c := tree.Census(tree.Get("/dir0"))
	c.stack = append(c.stack, 1<<30) // a block that doesn't exist
	tree.Adopt(New(), true)
	if c.Step() {
		t.Error("the census goes on")
	}
	if n := tree.arena.Living(1 << 30); n != nil {
		t.Errorf("there is a node %+v", n)
	}
}

// BenchmarkCensus counts 100,000 nodes, with the lock held for one step at a time.
func BenchmarkCensus(b *testing.B) {
	t := New()
	tx := Txn{Time: 1}
	for i := range 100_001 {
		path := "/a"
		if i > 0 {
			path = fmt.Sprintf("/a/%d", i)
		}
		tx.Zxid++
		if r := t.Apply(&tx, proto.OpCreate, &proto.CreateRequest{Path: path, ACL: proto.OpenACL()}); r.Code != proto.Ok {
			b.Fatal(r.Code)
		}
	}
	b.Run("step", func(b *testing.B) {
		c := t.Census(t.Get("/a"))
		for b.Loop() {
			if !c.Step() {
				c = t.Census(t.Get("/a"))
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			c := t.Census(t.Get("/a"))
			for c.Step() {
			}
		}
	})
}
