package tree

import (
	"fmt"
	"slices"
	"testing"

	"github.com/zkgo/zkgo/proto"
)

// ephemerals returns a tree in which session 7 has n ephemeral znodes.
func ephemerals(tb testing.TB, n int) *Tree {
	tb.Helper()
	tree := New()
	for i := range n {
		tx := &Txn{Zxid: int64(i + 1), Session: 7}
		if r := tree.Apply(tx, proto.OpCreate, &proto.CreateRequest{Path: fmt.Sprintf("/e%04d", i), ACL: proto.OpenACL(), Flags: int32(proto.ModeEphemeral)}); r.Code != proto.Ok {
			tb.Fatal(r.Code)
		}
	}
	return tree
}

// listed returns the paths of a list, sorted, and the number of its steps.
func listed(l *EphemeralList) (paths []string, steps int) {
	for steps = 1; l.Step(); steps++ {
	}
	paths = slices.Clone(l.Paths())
	slices.Sort(paths)
	return paths, steps
}

func TestEphemeralsWithAPrefix(t *testing.T) {
	t.Parallel()
	tree := ephemerals(t, 30)
	for prefix, want := range map[string]int{"": 30, "/": 30, "/e00": 30, "/e001": 10, "/e0017": 1, "/e00170": 0, "e": 0} {
		got, _ := listed(tree.ListEphemerals(7, prefix))
		if len(got) != want || len(slices.Compact(got)) != want {
			t.Errorf("%q: %q, want %d", prefix, got, want)
		}
	}
	if got, _ := listed(tree.ListEphemerals(8, "")); len(got) != 0 {
		t.Errorf("another session has %q", got)
	}
}

// A step should visit a bounded number of znodes. The list should have the znodes that
// exist in the end, without new ones.
func TestListingEphemeralsDuringChanges(t *testing.T) {
	t.Parallel()
	const count = 2*censusStep + 100
	tree := ephemerals(t, count)
	if all, steps := listed(tree.ListEphemerals(7, "")); len(all) != count || steps != 3 {
		t.Fatalf("%d paths in %d steps", len(all), steps)
	}
	l := tree.ListEphemerals(7, "")
	if !l.Step() || len(l.found) != censusStep {
		t.Fatalf("%d znodes in the first step", len(l.found))
	}
	all := slices.Sorted(slices.Values(tree.ListEphemerals(7, "").Paths()))
	want := all[200:]
	for _, path := range all[:200] {
		do(t, tree, proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1})
	}
	for i := range 100 { // these reuse the numbers of deleted ones
		tx := &Txn{Zxid: tree.LastZxid() + 1, Session: 7}
		must(t, tree.Apply(tx, proto.OpCreate, &proto.CreateRequest{Path: fmt.Sprintf("/e-late%d", i), ACL: proto.OpenACL(), Flags: int32(proto.ModeEphemeral)}))
	}
	if got, _ := listed(l); !slices.Equal(got, want) {
		t.Errorf("%d paths, want %d", len(got), len(want))
	}
	l = tree.ListEphemerals(7, "")
	l.Step()
	tree.Adopt(ephemerals(t, 3), true)
	if got, _ := listed(l); len(got) != 3 {
		t.Errorf("after the tree was replaced: %q", got)
	}
}

func BenchmarkListEphemerals(b *testing.B) {
	tree := ephemerals(b, 60_000)
	b.Run("start", func(b *testing.B) {
		for b.Loop() {
			tree.ListEphemerals(7, "/none")
		}
	})
	b.Run("step", func(b *testing.B) {
		l := tree.ListEphemerals(7, "/none")
		for b.Loop() {
			if !l.Step() {
				l = tree.ListEphemerals(7, "/none")
			}
		}
	})
}
