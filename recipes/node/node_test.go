package node_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/node"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// kept fails unless the client's session keeps a znode with the given data.
func kept(t *testing.T, zs *zktest.Server, c *client.Client, path, data string) {
	t.Helper()
	if !zs.Exists(path) {
		t.Fatalf("%s is missing", path)
	}
	if owner := zs.Ephemerals()[path]; owner != c.Session().ID || zs.Get(path) != data {
		t.Errorf("%s is %q of session %#x, not %q of %#x", path, zs.Get(path), owner, data, c.Session().ID)
	}
}

func TestNodeComesBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := zs.Client(t)
		n := node.Keep(recipes.On(c), "/a/b/n", []byte("1"))
		must.Do(t, n.Wait(ctx))
		kept(t, zs, c, "/a/b/n", "1")
		zs.Delete("/a")
		synctest.Wait()
		kept(t, zs, c, "/a/b/n", "1")
		n.SetData([]byte("2"))
		must.Do(t, n.Wait(ctx))
		kept(t, zs, c, "/a/b/n", "2")
		zs.ExpireSession(c.Session().ID)
		time.Sleep(time.Minute)
		must.Do(t, n.Wait(ctx))
		kept(t, zs, c, "/a/b/n", "2")
		zs.DropConnections()
		n.SetData([]byte("3"))
		must.Do(t, n.Wait(ctx))
		kept(t, zs, c, "/a/b/n", "3")
		n.Close()
		if zs.Exists("/a/b/n") || n.Exists() || !errors.Is(n.Err(), node.ErrNodeClosed) {
			t.Errorf("closed: %v, %v", zs.Dump(), n.Err())
		}
		rig.NoWatches(t, zs)
	})
}

// Two Nodes have the same name: the second should wait until the first is gone, and change
// nothing.
func TestSecondWaits(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c1, c2 := zs.Client(t), zs.Client(t)
		first := node.Keep(recipes.On(c1), "/n", []byte("1"))
		must.Do(t, first.Wait(ctx))
		second := node.Keep(recipes.On(c2), "/n", []byte("2"))
		time.Sleep(time.Minute)
		kept(t, zs, c1, "/n", "1")
		if second.Exists() {
			t.Error("both keep it")
		}
		second.SetData([]byte("3"))
		time.Sleep(time.Minute)
		kept(t, zs, c1, "/n", "1")
		first.Close()
		must.Do(t, second.Wait(ctx))
		kept(t, zs, c2, "/n", "3")
		third := node.Keep(recipes.On(c1), "/n", []byte("4"))
		time.Sleep(time.Minute)
		third.Close() // must not delete another client's znode
		kept(t, zs, c2, "/n", "3")
		second.Close()
		rig.NoWatches(t, zs)
	})
}

func TestTakeover(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		before, after := zs.Client(t), zs.Client(t)
		must.Get(before.Create(ctx, "/n", []byte("old"), client.Ephemeral))(t)
		n := node.Keep(recipes.On(after), "/n", []byte("new"), node.WithTakeover())
		must.Do(t, n.Wait(ctx))
		kept(t, zs, after, "/n", "new")
		n.Close()
	})
}

func TestExistingPersistentNodeIsKept(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Set("/n", "of before")
		n := node.Keep(recipes.On(zs.Client(t)), "/n", []byte("1"), node.WithMode(recipes.Persistent))
		must.Do(t, n.Wait(ctx))
		if zs.Get("/n") != "1" {
			t.Errorf("it holds %q", zs.Get("/n"))
		}
		n.Close()
		if zs.Exists("/n") {
			t.Error("the znode remains")
		}
	})
}

// The Node should retry a refused write, and Wait should report the refusal.
func TestRefusalIsReportedAndRetried(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		c := zs.Client(t)
		zs.FailNext(zktest.Match{Op: proto.OpCreate}, proto.ErrNoAuth)
		n := node.Keep(recipes.On(c), "/n", nil)
		short, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := n.Wait(short); !errors.Is(err, client.ErrNoAuth) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait: %v", err)
		}
		must.Do(t, n.Wait(rig.Within(t)))
		n.Close()
	})
}

func TestTTLNode(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		n := node.KeepTTL(recipes.On(zs.Client(t)), "/ttl", []byte("1"), 10*time.Second)
		must.Do(t, n.Wait(ctx))
		for range 5 {
			time.Sleep(9 * time.Second)
			if !zs.Exists("/ttl/touch") || zs.Get("/ttl") != "1" {
				t.Fatal("the znode is gone although it is kept")
			}
		}
		zs.Delete("/ttl")
		time.Sleep(10 * time.Second)
		if !zs.Exists("/ttl/touch") {
			t.Error("the znode is not recreated")
		}
		n.Close()
		if !zs.Exists("/ttl") {
			t.Error("the znode is gone immediately")
		}
		zs.Advance(3 * time.Minute)
		zs.Advance(3 * time.Minute)
		if zs.Exists("/ttl") {
			t.Errorf("it is left:\n%s", zs.Dump())
		}
	})
}

func TestTTLNodeNeedsServerSupport(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		zs := zktest.Run(t, zktest.WithConfig(func(c *server.Config) { c.Znodes.ExtendedTypes = false }))
		n := node.KeepTTL(recipes.On(zs.Client(t)), "/ttl", nil, time.Minute)
		if err := n.Wait(rig.Within(t)); !errors.Is(err, client.ErrUnimplemented) || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait: %v", err)
		}
		n.Close()
	})
}

func TestGroup(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		defer stop()
		c1, c2 := zs.Client(t), zs.Client(t)
		g1, g2 := node.NewGroup(recipes.On(c1), "/g"), node.NewGroup(recipes.On(c2), "/g")
		must.Do(t, g1.Wait(ctx))
		seen := make(chan string, 20)
		go func() {
			for members, err := range g1.Watch(ctx) {
				if err != nil {
					break
				}
				var list []string
				for _, id := range slices.Sorted(maps.Keys(members)) {
					list = append(list, id+"="+string(members[id]))
				}
				seen <- strings.Join(list, " ")
			}
			close(seen)
		}()
		expect := func(want string) {
			t.Helper()
			if got := <-seen; got != want {
				t.Errorf("members %q, not %q", got, want)
			}
		}
		expect("")
		a := g1.Join("a", []byte("1"))
		expect("a=1")
		b := g2.Join("b", []byte("2"))
		expect("a=1 b=2")
		b.SetData([]byte("3"))
		expect("a=1 b=3")
		a.Close()
		expect("b=3")
		b.Close()
		expect("")
		g1.Close()
		for range seen {
			t.Error("more was seen")
		}
		g2.Close()
		rig.NoWatches(t, zs)
		if name := node.PartyName(); len(name) != 41 || !strings.HasSuffix(name, "__party__") {
			t.Errorf("party name %q", name)
		}
	})
}

func TestNodeAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		n := node.Keep(e.Conn, "/dir/n", []byte("1"))
		if err := n.Wait(e.Ctx); err != nil && !e.Canceled() {
			e.Errorf("wait: %v", err)
		}
		synctest.Wait()
		e.Server.Delete("/dir/n")
		time.Sleep(time.Minute)
		n.SetData([]byte("2"))
		if err := n.Wait(e.Bounded()); err != nil {
			e.Fatalf("the znode is not recreated: %v", err)
		}
		time.Sleep(time.Minute)
		kept(e.T, e.Server, e.Client, "/dir/n", "2")
		n.Close()
		time.Sleep(time.Minute)
		if e.Server.Exists("/dir/n") {
			e.Error("the znode remains")
		}
		rig.NoWatches(e.T, e.Server)
	})
}

func TestTTLNodeAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		n := node.KeepTTL(e.Conn, "/dir/n", []byte("1"), 40*time.Second)
		if err := n.Wait(e.Ctx); err != nil && !e.Canceled() {
			e.Errorf("wait: %v", err)
		}
		for range 10 { // longer than two touches
			time.Sleep(9 * time.Second)
			if !e.Server.Exists("/dir/n/touch") {
				e.Fatalf("the time to live has run out although the znode is kept:\n%s", e.Server.Dump())
			}
		}
		n.SetData([]byte("2"))
		if err := n.Wait(e.Bounded()); err != nil || e.Server.Get("/dir/n") != "2" {
			e.Errorf("%q after the change, %v", e.Server.Get("/dir/n"), err)
		}
		n.Close()
		if !e.Server.Exists("/dir/n") {
			e.Error("the znode is gone immediately")
		}
		e.Server.Advance(3 * time.Minute)
		e.Server.Advance(3 * time.Minute)
		if e.Server.Exists("/dir/n") {
			e.Errorf("it is left:\n%s", e.Server.Dump())
		}
		rig.NoWatches(e.T, e.Server)
	})
}
