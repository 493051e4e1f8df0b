package subtree_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestWalkOrder(t *testing.T) {
	t.Parallel()
	_, c := run(t)
	kinds(t, c)
	got := paths(t, walk(c, "/app"))
	want := []string{
		"", "/a", "/a/sub", "/a-b", "/acl", "/big", "/binary", "/box", "/lines", "/live", "/number",
		"/q", "/q/n-0000000000", "/q/n-0000000001", "/short", "/ünïcode ☃",
	}
	if !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if !slices.IsSortedFunc(got, subtree.Compare) {
		t.Fatal("not in the order of Compare")
	}
}

func TestWalkDepthAndSystem(t *testing.T) {
	t.Parallel()
	_, c := run(t)
	kinds(t, c)
	if got := paths(t, subtree.Walk(c, "/", subtree.WalkOptions{Depth: 1, NoData: true})); !slices.Equal(got, []string{"", "/app"}) {
		t.Errorf("one level without ZooKeeper's own: %q", got)
	}
	if got := paths(t, subtree.Walk(c, "/", subtree.WalkOptions{Depth: 1, System: true})); !slices.Equal(got, []string{"", "/app", "/zookeeper"}) {
		t.Errorf("one level with ZooKeeper's own: %q", got)
	}
	if got := paths(t, subtree.Walk(c, "/app", subtree.WalkOptions{Depth: -1})); !slices.Equal(got, []string{""}) {
		t.Errorf("the root alone: %q", got)
	}
}

// TestWalkWide covers more children than are read concurrently, and an early end.
func TestWalkWide(t *testing.T) {
	t.Parallel()
	_, c := run(t)
	wide(t, c, "/w", 500)
	if got := paths(t, walk(c, "/w")); len(got) != 501 || !slices.IsSortedFunc(got, subtree.Compare) {
		t.Fatalf("%d znodes, sorted: %v", len(got), slices.IsSortedFunc(got, subtree.Compare))
	}
	n := 0
	for _, err := range walk(c, "/w")(background(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 10 {
			break
		}
	}
}

// TestWalkVanished checks that a znode deleted after its parent was read is skipped
// and reported.
func TestWalkVanished(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	wide(t, c, "/w", 3)
	zs.FailNext(zktest.Match{Op: proto.OpGetData, Path: "/w/000001"}, proto.ErrNoNode)
	var vanished []string
	got := paths(t, subtree.Walk(c, "/w", subtree.WalkOptions{Vanished: func(p string) { vanished = append(vanished, p) }}))
	if !slices.Equal(got, []string{"", "/000000", "/000002"}) || !slices.Equal(vanished, []string{"/000001"}) {
		t.Fatalf("got %q, vanished %q", got, vanished)
	}
	if err := firstError(t, walk(c, "/none")); !errors.Is(err, client.ErrNoNode) {
		t.Fatalf("no root: %v", err)
	}
}

// TestWalkUnreadable checks that an unreadable znode doesn't end the walk.
func TestWalkUnreadable(t *testing.T) {
	t.Parallel()
	_, c := run(t)
	ctx := background(t)
	wide(t, c, "/w", 2)
	if _, err := c.SetACL(ctx, "/w/000000", client.WorldACL(client.PermWrite|client.PermAdmin), client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	var bad []string
	for n, err := range walk(c, "/w")(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if n.Err != nil {
			bad = append(bad, n.Path)
		}
	}
	if !slices.Equal(bad, []string{"/000000"}) {
		t.Fatalf("unreadable: %q", bad)
	}
}

func firstError(t *testing.T, s subtree.Source) error {
	t.Helper()
	for _, err := range s(background(t)) {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestWalkRecreated checks that data, ACL and children of a znode and of its
// successor with the same name aren't mixed.
func TestWalkRecreated(t *testing.T) {
	t.Parallel()
	for _, held := range []proto.Op{proto.OpGetACL, proto.OpGetChildren} {
		zs, c := run(t)
		other := zs.Client(t)
		ctx := background(t)
		zs.Seed(map[string]string{"/w": "old", "/w/a": ""})
		fault := zs.DelayNext(zktest.Match{Op: held, Path: "/w"}, time.Hour)
		result := make(chan *subtree.Node, 3)
		go func() {
			o := subtree.WalkOptions{NoACL: held != proto.OpGetACL} // reading the ACL would notice it, too
			for n, err := range subtree.Walk(c, "/w", o)(ctx) {
				if err != nil {
					t.Error(err)
				}
				result <- n
			}
			close(result)
		}()
		fault.Wait()
		if _, err := other.Multi(ctx, client.DeleteOp("/w/a", -1), client.DeleteOp("/w", -1),
			client.CreateOp("/w", []byte("new")), client.CreateOp("/w/b", nil)); err != nil {
			t.Fatal(err)
		}
		zs.Advance(time.Hour)
		n, child := <-result, <-result
		if n == nil || child == nil || string(n.Data) != "new" || child.Path != "/b" {
			t.Fatalf("%v held up: %+v, %+v", held, n, child)
		}
	}
}
