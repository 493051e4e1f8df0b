package subtree_test

import (
	"errors"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestRemove(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	ctx := background(t)
	n := kinds(t, c) + 1
	wide(t, c, "/app/wide", 1200)
	n += 1201
	before := zs.Dump()
	if got, err := subtree.Remove(ctx, c, "/app", subtree.RemoveOptions{DryRun: true}); got != n || err != nil || zs.Dump() != before {
		t.Fatalf("a dry run: %d of %d, %v", got, n, err)
	}
	enough := errors.New("too many")
	if got, err := subtree.Remove(ctx, c, "/app", subtree.RemoveOptions{Found: func(int) error { return enough }}); got != 0 || !errors.Is(err, enough) || zs.Dump() != before {
		t.Fatalf("not wanted: %d, %v", got, err)
	}
	if got, err := subtree.Remove(ctx, c, "/app", subtree.RemoveOptions{KeepRoot: true}); got != n-1 || err != nil || len(zs.Children("/app")) != 0 {
		t.Fatalf("below: %d, %v", got, err)
	}
	if got, err := subtree.Remove(ctx, c, "/app", subtree.RemoveOptions{}); got != 1 || err != nil || zs.Exists("/app") {
		t.Fatalf("the root: %d, %v", got, err)
	}
	if _, err := subtree.Remove(ctx, c, "/app", subtree.RemoveOptions{}); !errors.Is(err, client.ErrNoNode) {
		t.Fatalf("nothing there: %v", err)
	}
}

func TestRemoveRefuses(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/a/b": "", "/c": ""})
	for _, path := range []string{"/", "/zookeeper", "/zookeeper/quota"} {
		if n, err := subtree.Remove(background(t), c, path, subtree.RemoveOptions{}); n != 0 || err == nil {
			t.Errorf("%s: %d deleted", path, n)
		}
	}
	if n, err := subtree.Remove(background(t), c, "/", subtree.RemoveOptions{KeepRoot: true}); n != 3 || err != nil || !zs.Exists("/zookeeper/config") {
		t.Errorf("%d deleted, %v", n, err)
	}
}

// TestRemoveBesideOthers checks that concurrent deletions and creations don't stop
// Remove.
func TestRemoveBesideOthers(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	other := zs.Client(t)
	zs.Seed(map[string]string{"/s": "", "/s/a": "", "/s/b": "", "/s/c": ""})
	ctx := background(t)
	_, err := subtree.Remove(ctx, c, "/s", subtree.RemoveOptions{Found: func(int) error {
		_, err := other.Multi(ctx, client.DeleteOp("/s/a", -1), client.CreateOp("/s/b/new", nil))
		return err
	}})
	if err != nil || zs.Exists("/s") {
		t.Fatalf("%v\n%s", err, zs.Dump())
	}
	// The error names the znode that can't be deleted.
	zs.Seed(map[string]string{"/s": "", "/s/a": ""})
	zs.FailAll(zktest.Match{Op: proto.OpMulti}, proto.ErrNoAuth)
	if _, err := subtree.Remove(ctx, c, "/s", subtree.RemoveOptions{}); !errors.Is(err, client.ErrNoAuth) {
		t.Fatalf("got %v", err)
	}
}

// TestRemoveUnreadable covers a znode with unknown children, because it can't be read.
func TestRemoveUnreadable(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	ctx := background(t)
	zs.Seed(map[string]string{"/s": "", "/s/leaf": "", "/s/dark": "", "/s/dark/x": ""})
	for _, path := range []string{"/s/leaf", "/s/dark"} {
		if _, err := c.SetACL(ctx, path, client.WorldACL(client.PermAdmin|client.PermDelete), client.AnyVersion); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := subtree.Remove(ctx, c, "/s", subtree.RemoveOptions{}); !errors.Is(err, client.ErrNoAuth) || zs.Exists("/s/leaf") || !zs.Exists("/s/dark/x") {
		t.Fatalf("%v\n%s", err, zs.Dump())
	}
}
