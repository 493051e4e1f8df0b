package subtree_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func place(c *client.Client, root string) subtree.Place {
	return subtree.Place{Client: c, Root: root}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	_, a := run(t)
	_, b := run(t)
	n := kinds(t, a)
	ctx := background(t)
	for _, to := range []subtree.Place{place(a, "/copy"), place(b, "/app")} {
		r, err := subtree.Copy(ctx, place(a, "/app"), to, subtree.ApplyOptions{})
		if err != nil || r.Created != n || r.Skipped != 1 || r.Set+r.Deleted+r.Kept != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		if compared := same(t, walk(a, "/app"), walk(to.Client, to.Root)); compared != n+1 {
			t.Errorf("%d znodes compared, want %d", compared, n+1)
		}
		// A second copy changes nothing.
		r, err = subtree.Copy(ctx, place(a, "/app"), to, subtree.ApplyOptions{Mode: subtree.Overwrite, Prune: true})
		if err != nil || r.Changed() || r.Unchanged != n {
			t.Errorf("the second time: %+v, %v", r, err)
		}
	}
}

func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	_, c := run(t)
	kinds(t, c)
	ctx := background(t)
	for name, to := range map[string]string{"already exists": "/app/q", "itself": "/app", "no parent": "/x/y", "no path": "x", "above": "/", "ZooKeeper's own": "/zookeeper/x"} {
		before := paths(t, walk(c, "/"))
		if _, err := subtree.Copy(ctx, place(c, "/app/a"), place(c, to), subtree.ApplyOptions{}); to != "/app" && err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := subtree.Copy(ctx, place(c, "/app"), place(c, to), subtree.ApplyOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
		if after := paths(t, walk(c, "/")); len(after) != len(before) {
			t.Errorf("%s: the tree changed: %q", name, after)
		}
	}
}

// TestModes checks how Merge, Overwrite and Prune treat existing znodes.
func TestModes(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	ctx := background(t)
	zs.Seed(map[string]string{"/s": "s", "/s/both": "new", "/s/only": "1", "/s/same": "="})
	fill := func() {
		zs.Delete("/t")
		zs.Seed(map[string]string{"/t": "s", "/t/both": "old", "/t/more": "2", "/t/more/x": "3", "/t/same": "="})
	}
	for _, test := range []struct {
		o    subtree.ApplyOptions
		want subtree.Report
		both string
		more bool
	}{
		{subtree.ApplyOptions{Mode: subtree.Merge}, subtree.Report{Created: 1, Kept: 1, Unchanged: 2, Bytes: 1}, "old", true},
		{subtree.ApplyOptions{Mode: subtree.Overwrite}, subtree.Report{Created: 1, Set: 1, Unchanged: 2, Bytes: 4}, "new", true},
		{subtree.ApplyOptions{Mode: subtree.Overwrite, Prune: true}, subtree.Report{Created: 1, Set: 1, Deleted: 2, Unchanged: 2, Bytes: 4}, "new", false},
	} {
		for _, dry := range []bool{true, false} {
			fill()
			test.o.DryRun = dry
			before := zs.Dump()
			r, err := subtree.Copy(ctx, place(c, "/s"), place(c, "/t"), test.o)
			if err != nil || r.Created != test.want.Created || r.Set != test.want.Set || r.Deleted != test.want.Deleted ||
				r.Kept != test.want.Kept || r.Unchanged != test.want.Unchanged || r.Bytes != test.want.Bytes {
				t.Errorf("%+v: %+v, %v, want %+v", test.o, r, err, test.want)
			}
			if dry {
				if zs.Dump() != before {
					t.Errorf("%+v: a dry run has changed something", test.o)
				}
				continue
			}
			if got := zs.Get("/t/both"); got != test.both || zs.Exists("/t/more/x") != test.more || !zs.Exists("/t/only") {
				t.Errorf("%+v: both is %q, and\n%s", test.o, got, zs.Dump())
			}
		}
	}
	if _, err := subtree.Copy(ctx, place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{Mode: subtree.Merge, Prune: true}); err == nil {
		t.Error("pruning without overwriting was taken")
	}
}

// TestOverwriteACL checks that only ACLs that differ are set.
func TestOverwriteACL(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	ctx := background(t)
	zs.Seed(map[string]string{"/s": "s", "/s/a": "", "/s/b": "", "/t": "s", "/t/a": "", "/t/b": ""})
	if _, err := c.SetACL(ctx, "/s/a", client.WorldACL(client.PermRead|client.PermAdmin), client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	r, err := subtree.Copy(ctx, place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{Mode: subtree.Overwrite})
	if err != nil || r.ACLs != 1 || r.Set != 0 || r.Unchanged != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	same(t, walk(c, "/s"), walk(c, "/t"))
}

// TestPruneKeepsEphemerals checks that Prune keeps ephemeral znodes and their
// ancestors.
func TestPruneKeepsEphemerals(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	ctx := background(t)
	zs.Seed(map[string]string{"/s": "", "/t": "", "/t/x": "", "/t/x/y": "", "/t/z": ""})
	if _, err := c.Create(ctx, "/t/x/y/live", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	r, err := subtree.Copy(ctx, place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{Mode: subtree.Overwrite, Prune: true})
	if err != nil || r.Deleted != 1 || r.Kept != 3 || !zs.Exists("/t/x/y/live") || zs.Exists("/t/z") {
		t.Fatalf("%+v, %v\n%s", r, err, zs.Dump())
	}
}

// TestConflict checks that a znode that changes between read and write stops the
// copy, and that the other client's write is kept.
func TestConflict(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/s": "new", "/t": "old"})
	other := zs.Client(t)
	done := false
	src := subtree.Walk(c, "/s", subtree.WalkOptions{})
	_, err := subtree.Apply(background(t), c, "/t", src, subtree.ApplyOptions{Mode: subtree.Overwrite, Did: func(subtree.Action) { done = true }})
	if err != nil || !done {
		t.Fatal(err)
	}
	zs.Set("/t", "old")
	fault := zs.DelayNext(zktest.Match{Op: proto.OpSetData, Path: "/t", Session: c.Session().ID}, patience)
	result := make(chan error, 1)
	go func() {
		_, err := subtree.Apply(background(t), c, "/t", src, subtree.ApplyOptions{Mode: subtree.Overwrite})
		result <- err
	}()
	fault.Wait()
	if _, err := other.Set(background(t), "/t", []byte("theirs"), client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	fault.Cancel()
	zs.Advance(patience)
	var conflict *subtree.ConflictError
	if err := <-result; !errors.As(err, &conflict) || conflict.Path != "/t" || !errors.Is(err, client.ErrBadVersion) {
		t.Fatalf("got %v", err)
	}
	if got := zs.Get("/t"); got != "theirs" {
		t.Fatalf("/t is %q", got)
	}
}

// TestConflictInTransaction checks the same for several znodes in one transaction.
func TestConflictInTransaction(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/s": "1", "/s/a": "2", "/t": "", "/t/a": ""})
	other := zs.Client(t)
	fault := zs.DelayNext(zktest.Match{Op: proto.OpMulti, Session: c.Session().ID}, time.Hour)
	result := make(chan error, 1)
	go func() {
		_, err := subtree.Copy(background(t), place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{Mode: subtree.Overwrite})
		result <- err
	}()
	fault.Wait()
	if _, err := other.Set(background(t), "/t/a", []byte("theirs"), client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	zs.Advance(time.Hour)
	var conflict *subtree.ConflictError
	if err := <-result; !errors.As(err, &conflict) || conflict.Path != "/t/a" || zs.Get("/t/a") != "theirs" || zs.Get("/t") != "" {
		t.Fatalf("%v\n%s", err, zs.Dump())
	}
}

// TestBlankedACL checks that we don't copy a hidden ACL as if it were complete.
func TestBlankedACL(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	ctx := background(t)
	hidden := append(client.WorldACL(client.PermRead), client.ACL{Perms: client.PermAll, ID: client.ID{Scheme: "digest", ID: "u:hash"}})
	if _, err := c.Create(ctx, "/s", nil, client.WithACL(hidden...)); err != nil {
		t.Fatal(err)
	}
	if _, err := subtree.Copy(ctx, place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{}); err == nil || zs.Exists("/t") {
		t.Fatalf("got %v", err)
	}
	if _, err := subtree.Copy(ctx, place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{NoACL: true}); err != nil {
		t.Fatal(err)
	}
}

// TestCopyOverlap checks that a subtree can't be copied into itself or to an
// ancestor.
func TestCopyOverlap(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/s": "", "/s/a": "", "/s/a/b": ""})
	before := zs.Dump()
	for _, pair := range [][2]string{{"/s", "/s/new"}, {"/s/a", "/s"}, {"/s", "/s"}} {
		_, err := subtree.Copy(background(t), place(c, pair[0]), place(c, pair[1]), subtree.ApplyOptions{Mode: subtree.Overwrite, Prune: true})
		if err == nil || zs.Dump() != before {
			t.Errorf("%q: %v\n%s", pair, err, zs.Dump())
		}
	}
}

// TestLostReply checks that we execute a transaction only once if its reply is lost.
func TestLostReply(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{true, false} {
		zs, c := run(t)
		zs.Seed(map[string]string{"/s": "s", "/s/a": "1", "/s/b": "2"})
		m := zktest.Match{Op: proto.OpMulti}
		var fault *zktest.Fault
		if after {
			fault = zs.LoseReply(m)
		} else {
			fault = zs.LoseNext(m)
		}
		r, err := subtree.Copy(background(t), place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{})
		if err != nil || r.Created != 3 || !fault.Happened() {
			t.Fatalf("after %v: %+v, %v, happened %v", after, r, err, fault.Happened())
		}
		same(t, walk(c, "/s"), walk(c, "/t"))
	}
}

// TestSequences checks that sequence numbers that are too low are reported.
func TestSequences(t *testing.T) {
	t.Parallel()
	_, c := run(t)
	ctx := background(t)
	kinds(t, c)
	if err := c.Delete(ctx, "/app/q/n-0000000000", client.AnyVersion); err != nil {
		t.Fatal(err)
	}
	r, err := subtree.Copy(ctx, place(c, "/app"), place(c, "/copy"), subtree.ApplyOptions{})
	if err != nil || len(r.Sequences) != 1 || r.Sequences[0] != (subtree.Sequence{Path: "/copy/q", Next: 1, Highest: 1}) {
		t.Fatalf("%+v, %v", r.Sequences, err)
	}
	// The report is correct.
	if _, err := c.Create(ctx, "/copy/q/n-", nil, client.Sequential); !errors.Is(err, client.ErrNodeExists) {
		t.Fatalf("got %v", err)
	}
}

// TestLargeData checks that transactions stay below a server's limit.
func TestLargeData(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	nodes := map[string]string{"/s": ""}
	for i := range 12 {
		nodes[fmt.Sprintf("/s/%d", i)] = strings.Repeat("x", 200_000)
	}
	for path, data := range nodes {
		zs.Set(path, data)
	}
	if _, err := subtree.Copy(background(t), place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	same(t, walk(c, "/s"), walk(c, "/t"))
	if n := zs.Requests(zktest.Match{Op: proto.OpMulti}); n > 2 {
		t.Errorf("%d transactions for data of which two do not fit into one", n)
	}
}

// TestManyInOneTransaction checks that small znodes share transactions.
func TestManyInOneTransaction(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	wide(t, c, "/s", 1200)
	before := zs.Requests(zktest.Match{Op: proto.OpMulti})
	if _, err := subtree.Copy(background(t), place(c, "/s"), place(c, "/t"), subtree.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := zs.Requests(zktest.Match{Op: proto.OpMulti}) - before; n != 3 {
		t.Errorf("%d transactions for 1201 znodes", n)
	}
}

// TestPruneConflict checks that a znode that another client writes before it's pruned
// is kept.
func TestPruneConflict(t *testing.T) {
	t.Parallel()
	zs, c := run(t)
	zs.Seed(map[string]string{"/s": "", "/s/a": "", "/t": "", "/t/b": ""})
	src := subtree.Walk(c, "/s", subtree.WalkOptions{})
	_, err := subtree.Apply(background(t), c, "/t", func(ctx context.Context) iter.Seq2[*subtree.Node, error] {
		return func(yield func(*subtree.Node, error) bool) {
			src(ctx)(yield)
			zs.Set("/t/b", "theirs") // after the target was read
		}
	}, subtree.ApplyOptions{Mode: subtree.Overwrite, Prune: true})
	var conflict *subtree.ConflictError
	if !errors.As(err, &conflict) || conflict.Path != "/t/b" || zs.Get("/t/b") != "theirs" {
		t.Fatalf("%v\n%s", err, zs.Dump())
	}
}
