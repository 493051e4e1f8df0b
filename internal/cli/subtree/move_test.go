package subtree_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestMove(t *testing.T) {
	t.Parallel()
	_, a := run(t)
	_, b := run(t)
	ctx := background(t)
	n := kinds(t, a)
	if _, _, err := subtree.Move(ctx, place(a, "/app"), place(b, "/app"), subtree.MoveOptions{}); err == nil || !strings.Contains(err.Error(), "/app/live") {
		t.Fatalf("an ephemeral znode was moved: %v", err)
	}
	if _, found, _ := b.Exists(ctx, "/app"); found {
		t.Fatal("something was written before it was refused")
	}
	if err := a.Delete(ctx, "/app/live", client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	before := export(t, walk(a, "/app"), subtree.ExportOptions{Format: subtree.JSON, Root: "/app"})
	for _, step := range []struct{ from, to subtree.Place }{
		{place(a, "/app"), place(b, "/app")},
		{place(b, "/app"), place(b, "/other")},
		{place(b, "/other"), place(a, "/app")},
	} {
		r, moved, err := subtree.Move(ctx, step.from, step.to, subtree.MoveOptions{})
		if err != nil || moved != n || r.Created != n {
			t.Fatalf("%+v, %d, %v", r, moved, err)
		}
		if _, found, err := step.from.Client.Exists(ctx, step.from.Root); found || err != nil {
			t.Fatalf("it is still there: %v", err)
		}
	}
	if after := export(t, walk(a, "/app"), subtree.ExportOptions{Format: subtree.JSON, Root: "/app"}); after != before {
		t.Fatalf("moved there and back:\n%s\nbefore:\n%s", after, before)
	}
}

// TestMoveStops checks that another client's change stops the move, and that no write
// of that client is lost.
func TestMoveStops(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *client.Client) error{
		"data": func(c *client.Client) error {
			_, err := c.Set(t.Context(), "/s/b", []byte("theirs"), client.AnyVersion)
			return err
		},
		"acl": func(c *client.Client) error {
			_, err := c.SetACL(t.Context(), "/s/b", client.WorldACL(client.PermAll&^client.PermCreate), client.AnyVersion)
			return err
		},
		"created": func(c *client.Client) error {
			_, err := c.Create(t.Context(), "/s/b/theirs", nil)
			return err
		},
		"deleted": func(c *client.Client) error { return c.Delete(t.Context(), "/s/b", client.AnyVersion) },
		"recreated": func(c *client.Client) error {
			_, err := c.Multi(t.Context(), client.DeleteOp("/s/b", client.AnyVersion), client.CreateOp("/s/b", []byte("2")))
			return err
		},
	} {
		for _, stage := range []subtree.Stage{subtree.StageVerify, subtree.StageDelete} {
			t.Run(name+" before "+string(stage), func(t *testing.T) {
				t.Parallel()
				zs, c := run(t)
				zs.Seed(map[string]string{"/s": "s", "/s/a": "1", "/s/b": "2", "/s/c": "3"})
				other := zs.Client(t)
				_, moved, err := subtree.Move(background(t), place(c, "/s"), place(c, "/t"), subtree.MoveOptions{Stage: func(s subtree.Stage) {
					if s == stage {
						if err := change(other); err != nil {
							t.Error(err)
						}
					}
				}})
				var conflict *subtree.ConflictError
				if !errors.As(err, &conflict) || moved != 0 || !strings.HasPrefix(conflict.Path, "/s/b") {
					t.Fatalf("%d moved, %v", moved, err)
				}
				if !zs.Exists("/s/a") || !zs.Exists("/s/c") || zs.Get("/t/b") != "2" {
					t.Fatalf("something is lost:\n%s", zs.Dump())
				}
			})
		}
	}
}

// TestMoveTargetChanged checks that nothing is deleted unless the copy is complete.
func TestMoveTargetChanged(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/s": "s", "/s/a": "1"})
	_, moved, err := subtree.Move(background(t), place(c, "/s"), place(c, "/t"), subtree.MoveOptions{Stage: func(s subtree.Stage) {
		if s == subtree.StageVerify {
			zs.Set("/t/a", "other")
		}
	}})
	if err == nil || moved != 0 || zs.Get("/s/a") != "1" {
		t.Fatalf("%d moved, %v\n%s", moved, err, zs.Dump())
	}
}

// TestMoveLastMoment checks that the server detects a write between the last check
// and the deletion.
func TestMoveLastMoment(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/s": "s", "/s/a": "1"})
	other := zs.Client(t)
	fault := zs.DelayNext(zktest.Match{Op: proto.OpMulti, Session: c.Session().ID, Nth: 2}, time.Hour) // the first multi creates
	result := make(chan error, 1)
	go func() {
		_, _, err := subtree.Move(background(t), place(c, "/s"), place(c, "/t"), subtree.MoveOptions{})
		result <- err
	}()
	fault.Wait()
	if _, err := other.Set(background(t), "/s/a", []byte("theirs"), client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	zs.Advance(time.Hour)
	var conflict *subtree.ConflictError
	if err := <-result; !errors.As(err, &conflict) || conflict.Path != "/s/a" || zs.Get("/s/a") != "theirs" {
		t.Fatalf("%v\n%s", err, zs.Dump())
	}
}

// TestMoveOntoItself checks that Move notices two connections to the same ensemble.
func TestMoveOntoItself(t *testing.T) {
	t.Parallel()
	zs, a := run(t)
	b := zs.Client(t)
	zs.Seed(map[string]string{"/s": "s", "/s/a": "1"})
	_, moved, err := subtree.Move(background(t), place(a, "/s"), place(b, "/s"), subtree.MoveOptions{Apply: subtree.ApplyOptions{Mode: subtree.Overwrite}})
	if err == nil || moved != 0 || !zs.Exists("/s/a") {
		t.Fatalf("%d moved, %v\n%s", moved, err, zs.Dump())
	}
	// Into itself: the copy is made, and the source stays.
	if _, moved, err := subtree.Move(background(t), place(a, "/s"), place(b, "/s/x"), subtree.MoveOptions{}); err == nil || moved != 0 || zs.Get("/s/a") != "1" {
		t.Fatalf("%d moved, %v\n%s", moved, err, zs.Dump())
	}
	for _, bad := range []subtree.MoveOptions{
		{Apply: subtree.ApplyOptions{NoACL: true}}, {Apply: subtree.ApplyOptions{KeepEphemerals: true}}, {Apply: subtree.ApplyOptions{Mode: subtree.Merge}},
	} {
		if _, _, err := subtree.Move(background(t), place(a, "/s"), place(a, "/y"), bad); err == nil {
			t.Errorf("%+v was taken", bad)
		}
	}
}
