package client_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestBasicOperations(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs)
	ctx := bounded(t)

	path, stat, err := c.CreateStat(ctx, "/a", []byte("one"))
	must(t, err)
	if path != "/a" || stat.Version != 0 || stat.Czxid == 0 {
		t.Fatalf("created %q %+v", path, stat)
	}
	data, stat, err := c.Get(ctx, "/a")
	must(t, err)
	if string(data) != "one" || stat.DataLength != 3 {
		t.Fatalf("got %q %+v", data, stat)
	}
	stat, err = c.Set(ctx, "/a", []byte("two"), 0)
	must(t, err)
	if stat.Version != 1 {
		t.Fatalf("version %d", stat.Version)
	}
	if _, err := c.Set(ctx, "/a", nil, 0); !errors.Is(err, client.ErrBadVersion) || errors.Is(err, client.ErrUnknownOutcome) {
		t.Fatalf("set to an old version: %v", err)
	}
	seq, err := c.Create(ctx, "/a/", nil, client.Ephemeral, client.Sequential)
	must(t, err)
	if seq != "/a/0000000000" {
		t.Fatalf("sequential %q", seq)
	}
	names, _, err := c.Children(ctx, "/a")
	must(t, err)
	if !slices.Equal(names, []string{"0000000000"}) {
		t.Fatalf("children %q", names)
	}
	if n, err := c.ChildrenCount(ctx, "/a"); n != 1 || err != nil {
		t.Fatalf("%d children, %v", n, err)
	}
	if eph, err := c.Ephemerals(ctx, "/"); !slices.Equal(eph, []string{seq}) || err != nil {
		t.Fatalf("ephemerals %q, %v", eph, err)
	}
	must(t, c.Sync(ctx, "/"))
	if _, found, err := c.Exists(ctx, "/none"); found || err != nil {
		t.Fatalf("exists %v, %v", found, err)
	}
	if err := c.Delete(ctx, "/a", client.AnyVersion); !errors.Is(err, client.ErrNotEmpty) {
		t.Fatalf("delete of a parent: %v", err)
	}
	must(t, c.DeleteAll(ctx, "/a"))
	if _, _, err := c.Get(ctx, "/a"); !errors.Is(err, client.ErrNoNode) {
		t.Fatalf("get of a deleted znode: %v", err)
	}
}

func TestWatchesAreSetAgain(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs)
	ctx := bounded(t)
	zs.Set("/a", "1")
	_, _, w, err := c.GetW(ctx, "/a")
	must(t, err)
	p, err := c.WatchRecursive(ctx, "/")
	must(t, err)
	states := c.Subscribe()
	defer states.Close()

	zs.DropConnections()
	for {
		s, _ := await(t, states.C(), "reconnected")
		if s.State == client.StateReconnected {
			break
		}
	}
	must(t, c.Sync(ctx, "/"))
	zs.Set("/a", "2")
	e, _ := await(t, w.Events(), "event")
	if e.Type != client.EventNodeDataChanged || e.Path != "/a" {
		t.Fatalf("event %+v", e)
	}
	if _, ok := await(t, w.Events(), "end"); ok || w.Err() != nil {
		t.Fatal("a one-shot watch continues")
	}
	e, _ = await(t, p.Events(), "resync")
	if e.Type != client.EventResync {
		t.Fatalf("event %+v", e)
	}
	e, _ = await(t, p.Events(), "event")
	if e.Type != client.EventNodeDataChanged {
		t.Fatalf("event %+v", e)
	}
	must(t, p.Remove(ctx))
	if left := zs.Watches(); len(left) != 0 {
		t.Fatalf("watches left: %v", left)
	}
}

func TestLostReplyIsUnknown(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs)
	ctx := bounded(t)
	zs.LoseReply(zktest.Match{Op: proto.OpCreate})
	_, err := c.Create(ctx, "/a", nil)
	if !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, client.ErrConnectionLoss) {
		t.Fatalf("create: %v", err)
	}
	if !zs.Exists("/a") {
		t.Fatal("not created")
	}
	zs.LoseReply(zktest.Match{Op: proto.OpCreate})
	path, err := c.Create(ctx, "/dir/b-", nil, client.CreateParents, client.Protected, client.Sequential, client.Ephemeral)
	must(t, err)
	names := zs.Children("/dir")
	if len(names) != 1 || "/dir/"+names[0] != path {
		t.Fatalf("created %q, there are %q", path, names)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c := connect(t, zs, client.WithSessionTimeout(10*time.Second))
	ctx := bounded(t)
	old := c.Session().ID
	_, _, w, err := c.ExistsW(ctx, "/a")
	must(t, err)
	l, err := c.Lease(ctx)
	must(t, err)
	states := c.Subscribe()
	defer states.Close()
	zs.ExpireSession(old)
	await(t, l.Done(), "the lease's end")
	if _, ok := await(t, w.Events(), "the watch's end"); ok || !errors.Is(w.Err(), client.ErrSessionExpired) {
		t.Fatalf("the watch ended with %v", w.Err())
	}
	if _, err := c.InSession(old).Create(ctx, "/b", nil); !errors.Is(err, client.ErrSessionExpired) {
		t.Fatalf("create in the old session: %v", err)
	}
	_, err = c.Create(ctx, "/b", nil)
	must(t, err)
	var got []client.State
	for !slices.Contains(got, client.StateLost) || got[len(got)-1] != client.StateConnected {
		s, _ := await(t, states.C(), "state")
		got = append(got, s.State)
	}
	t.Log(got)
}
