package client_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// noWatches fails the test if the server has any watch.
func noWatches(t *testing.T, zs *zktest.Server, c *client.Client) {
	t.Helper()
	must(t, c.Sync(bounded(t), "/")) // after the requests that remove them
	if left := zs.Watches(); len(left) != 0 {
		t.Errorf("the server keeps %v", left)
	}
}

func TestOneShotWatches(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		_, found, w, err := c.ExistsW(ctx, "/a")
		must(t, err)
		if found {
			t.Fatal("found")
		}
		zs.Set("/a", "1")
		expect(t, w, client.EventNodeCreated, "/a")
		_, _, data, err := c.GetW(ctx, "/a")
		must(t, err)
		_, _, child, err := c.ChildrenW(ctx, "/a")
		must(t, err)
		_, _, exists, err := c.ExistsW(ctx, "/a")
		must(t, err)
		zs.Set("/a/b", "1")
		expect(t, child, client.EventNodeChildrenChanged, "/a")
		zs.Delete("/a")
		expect(t, data, client.EventNodeDeleted, "/a")
		expect(t, exists, client.EventNodeDeleted, "/a")
		if _, _, w, err := c.GetW(ctx, "/a"); w != nil || !errors.Is(err, client.ErrNoNode) {
			t.Errorf("a watch on a missing znode: %v, %v", w, err)
		}
		noWatches(t, zs, c)
	})
}

// expect reads the one event of a watch.
func expect(t testing.TB, w *client.Watch, typ client.EventType, path string) {
	t.Helper()
	e, ok := await(t, w.Events(), typ.String())
	if !ok || e.Type != typ || e.Path != path {
		t.Fatalf("got %v (%v), want %v of %s", e, ok, typ, path)
	}
	if _, ok := await(t, w.Events(), "the end"); ok || w.Err() != nil {
		t.Fatalf("the watch continues, or ended with %v", w.Err())
	}
}

func TestRemove(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		zs.Set("/a", "1")
		_, _, one, err := c.GetW(ctx, "/a")
		must(t, err)
		_, _, two, err := c.GetW(ctx, "/a")
		must(t, err)
		_, _, child, err := c.ChildrenW(ctx, "/a")
		must(t, err)
		rec, err := c.WatchRecursive(ctx, "/a")
		must(t, err)
		per, err := c.WatchPersistent(ctx, "/a")
		must(t, err)
		must(t, one.Remove(ctx))
		if _, ok := <-one.Events(); ok || !errors.Is(one.Err(), client.ErrWatchRemoved) {
			t.Errorf("removed: %v", one.Err())
		}
		must(t, one.Remove(ctx))
		if ok, err := two.Check(ctx); !ok || err != nil {
			t.Errorf("the other watch was removed too: %v", err)
		}
		must(t, rec.Remove(ctx))
		must(t, child.Remove(ctx))
		zs.Set("/a", "2")
		expect(t, two, client.EventNodeDataChanged, "/a")
		if e := <-per.Events(); e.Type != client.EventNodeDataChanged {
			t.Errorf("persistent: %v", e)
		}
		must(t, per.Remove(ctx))
		noWatches(t, zs, c)
	})
}

func TestCancelLeavesNoWatch(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		zs.Set("/a", "1")
		set := map[string]func(context.Context) error{
			"get":       func(ctx context.Context) error { _, _, _, err := c.GetW(ctx, "/a"); return err },
			"exists":    func(ctx context.Context) error { _, _, _, err := c.ExistsW(ctx, "/none"); return err },
			"children":  func(ctx context.Context) error { _, _, _, err := c.ChildrenW(ctx, "/a"); return err },
			"recursive": func(ctx context.Context) error { _, err := c.WatchRecursive(ctx, "/"); return err },
		}
		for name, f := range set {
			delay := zs.DelayNext(zktest.Match{Path: "/*"}, time.Second)
			ctx, cancel := context.WithCancel(bounded(t))
			done := make(chan error, 1)
			go func() { done <- f(ctx) }()
			delay.Wait()
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Minute)
			noWatches(t, zs, c)
		}

		// A watch that another caller requests during the removal should not be lost.
		delay := zs.DelayNext(zktest.Match{Path: "/a"}, time.Second)
		ctx, cancel := context.WithCancel(bounded(t))
		done := make(chan error, 1)
		go func() { _, _, _, err := c.GetW(ctx, "/a"); done <- err }()
		delay.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %v", err)
		}
		_, _, w, err := c.GetW(bounded(t), "/a")
		must(t, err)
		time.Sleep(time.Minute)
		zs.Set("/a", "2")
		expect(t, w, client.EventNodeDataChanged, "/a")
	})
}

func TestWatchesOverReconnects(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		states := c.Subscribe()
		defer states.Close()
		for _, path := range []string{"/same", "/changed", "/deleted", "/children"} {
			zs.Set(path, "1")
		}
		watch := map[string]*client.Watch{}
		for _, path := range []string{"/same", "/changed", "/deleted"} {
			_, _, w, err := c.GetW(ctx, path)
			must(t, err)
			watch[path] = w
		}
		for _, path := range []string{"/created", "/absent"} {
			_, _, w, err := c.ExistsW(ctx, path)
			must(t, err)
			watch[path] = w
		}
		_, _, w, err := c.ChildrenW(ctx, "/children")
		must(t, err)
		watch["/children"] = w
		must(t, c.Sync(ctx, "/"))

		accept := zs.RefuseConnections()
		zs.DropConnections()
		until(t, states, client.StateSuspended)
		zs.Set("/changed", "2")
		zs.Delete("/deleted")
		zs.Set("/created", "1")
		zs.Set("/children/a", "1")
		accept()
		until(t, states, client.StateReconnected)
		expect(t, watch["/changed"], client.EventNodeDataChanged, "/changed")
		expect(t, watch["/deleted"], client.EventNodeDeleted, "/deleted")
		expect(t, watch["/created"], client.EventNodeCreated, "/created")
		expect(t, watch["/children"], client.EventNodeChildrenChanged, "/children")
		for _, path := range []string{"/same", "/absent"} {
			must(t, c.Sync(ctx, "/"))
			if len(watch[path].Events()) != 0 {
				t.Errorf("%s: an event without a change", path)
			}
			zs.Set(path, "2")
		}
		expect(t, watch["/same"], client.EventNodeDataChanged, "/same")
		expect(t, watch["/absent"], client.EventNodeCreated, "/absent")
		noWatches(t, zs, c)
	})
}

func TestManyWatchesAreSetInChunks(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		states := c.Subscribe()
		defer states.Close()
		const n = 4000
		long := strings.Repeat("x", 90)
		for i := range n {
			_, _, _, err := c.ExistsW(ctx, fmt.Sprintf("/%s%d", long, i))
			must(t, err)
		}
		zs.ForgetRequests()
		zs.DropConnections()
		until(t, states, client.StateReconnected)
		must(t, c.Sync(ctx, "/"))
		if got := len(zs.Watches()); got != n {
			t.Errorf("%d watches, want %d", got, n)
		}
		if got := zs.Requests(zktest.Match{Op: proto.OpSetWatches}); got != 4 {
			t.Errorf("%d requests", got)
		}
	})
}

func TestEventsComeBeforeNewState(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	c, writer := connect(t, zs), connect(t, zs)
	ctx := bounded(t)
	zs.Set("/a", "0")
	for i := 1; i <= 200; i++ {
		_, stat, w, err := c.GetW(ctx, "/a")
		must(t, err)
		go func() { _, _ = writer.Set(ctx, "/a", nil, client.AnyVersion) }()
		for {
			_, now, err := c.Get(ctx, "/a")
			must(t, err)
			if now.Version == stat.Version {
				continue
			}
			select {
			case <-w.Events():
			default:
				t.Fatal("the new state could be read before the event")
			}
			break
		}
	}
}

func TestSlowReaderGetsResync(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		c := connect(t, zs)
		ctx := bounded(t)
		w, err := c.WatchRecursive(ctx, "/a")
		must(t, err)
		for i := range 1000 {
			_, err := c.Create(ctx, fmt.Sprintf("/a/%d", i), nil, client.CreateParents)
			must(t, err)
		}
		resyncs, last := 0, client.Event{}
		for len(w.Events()) > 0 {
			if last = <-w.Events(); last.Type == client.EventResync {
				resyncs++
			}
		}
		if resyncs != 1 || last.Path != "/a/999" {
			t.Errorf("%d resyncs, the last event is %v", resyncs, last)
		}
	})
}

func TestNamespaces(t *testing.T) {
	inFakeTime(t, func(t *testing.T, zs *zktest.Server) {
		ctx := bounded(t)
		c, err := client.Connect(ctx, "zk/root", dialer(zs))
		must(t, err)
		defer c.Close()
		v := c.Namespace("/app").Namespace("/x").Namespace("/")
		path, err := v.Create(ctx, "/a/b", []byte("1"), client.CreateParents, client.Ephemeral)
		must(t, err)
		if path != "/a/b" || v.FullPath(path) != "/root/app/x/a/b" || zs.Get("/root/app/x/a/b") != "1" {
			t.Fatalf("created %q, %q", path, v.FullPath(path))
		}
		w, err := v.WatchRecursive(ctx, "/")
		must(t, err)
		zs.Set("/root/app/x/c", "1")
		zs.Set("/root/app/xy", "1")
		zs.Set("/root/app/x", "1")
		for _, want := range []string{"/c", "/"} {
			if e := <-w.Events(); e.Path != want {
				t.Errorf("event %+v, want %s", e, want)
			}
		}
		if eph, err := v.Ephemerals(ctx, "/"); err != nil || len(eph) != 1 || eph[0] != "/a/b" {
			t.Errorf("ephemerals %q, %v", eph, err)
		}
		results, err := v.Txn().Create("/t-", nil, client.Sequential).Set("/c", []byte("2"), client.AnyVersion).Commit(ctx)
		must(t, err)
		if !strings.HasPrefix(results[0].Path, "/t-") || results[1].Stat.Version != 1 {
			t.Errorf("results %+v", results)
		}
		if _, _, err := c.Namespace("app").Get(ctx, "/"); !errors.Is(err, client.ErrBadArguments) {
			t.Errorf("an invalid namespace: %v", err)
		}
		if cfg, err := v.Config(ctx); err != nil || cfg.Text == "" && cfg.Version != 0 {
			t.Errorf("config %+v, %v", cfg, err)
		}
	})
}
