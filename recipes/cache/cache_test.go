package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

// kinds are the ways in which a cache can watch znodes.
var kinds = map[string][]cache.Option{
	"one-shot":  nil,
	"recursive": {cache.WithRecursiveWatch()},
}

func TestNodeComesChangesAndGoes(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := cache.NewNode(recipes.On(zs.Client(t)), "/app/config")
		must.Do(t, c.Wait(ctx))
		if _, there := c.Get("/app/config"); there {
			t.Error("the znode is in the cache before its creation")
		}
		for _, value := range []string{"1", "2", "3"} {
			zs.Set("/app/config", value)
			zs.Set("/app/config/below", "not in it")
			must.Get(c.WaitFor(ctx, "/app/config", func(n cache.Node, there bool) bool { return there && string(n.Data) == value }))(t)
			if c.Len() != 1 {
				t.Errorf("it holds %v", held(c))
			}
			if value == "2" {
				zs.Delete("/app")
				must.Get(c.WaitFor(ctx, "/app/config", func(_ cache.Node, there bool) bool { return !there }))(t)
			}
		}
		c.Close()
		rig.NoWatches(t, zs)
		if !errors.Is(c.Err(), cache.ErrCacheClosed) {
			t.Errorf("closed: %v", c.Err())
		}
	})
}

func TestChildrenAndChanges(t *testing.T) {
	for name, opts := range kinds {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				ctx, stop := context.WithCancel(rig.Within(t))
				defer stop()
				zs.Seed(map[string]string{"/m": "", "/m/b": "1", "/m/a": "2", "/m/a/x": "3"})
				c := cache.NewChildren(recipes.On(zs.Client(t)), "/m", opts...)
				must.Do(t, c.Wait(ctx))
				var names []string
				for n := range c.Children("/m") {
					names = append(names, n.Name())
				}
				if !slices.Equal(names, []string{"a", "b"}) || c.Len() != 3 {
					t.Errorf("children %v of %v", names, held(c))
				}
				var got []string
				go func() {
					for change, err := range c.Changes(ctx) {
						if err != nil {
							return // the cache was closed
						}
						got = append(got, fmt.Sprintf("%v %s=%s", change.Kind, change.Node.Path, change.Node.Data))
					}
				}()
				for _, do := range []func(){
					func() { zs.Set("/m/c", "4") },
					func() { zs.Set("/m/b", "5") },
					func() { zs.Set("/m/c/y", "6") },
					func() { zs.Delete("/m/a") },
				} {
					do()
					synctest.Wait()
				}
				want := []string{"Resync =", "Completed =", "Added /m/c=4", "Updated /m/b=5", "Removed /m/a=2"}
				// Set creates without data first.
				got = slices.DeleteFunc(got, func(s string) bool { return s == "Added /m/c=" || s == "Updated /m/c=4" })
				want = slices.DeleteFunc(want, func(s string) bool { return s == "Added /m/c=4" && !slices.Contains(got, s) })
				if !slices.Equal(got, want) {
					t.Errorf("changes %q, not %q", got, want)
				}
				c.Close()
				rig.NoWatches(t, zs)
			})
		})
	}
}

func TestFilterDepthAndWithoutData(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Seed(map[string]string{"/r": "r", "/r/a": "a", "/r/a/b": "b", "/r/a/b/c": "c", "/r/secret": "s", "/r/secret/x": "x"})
		c := cache.NewTree(recipes.On(zs.Client(t)), "/r", cache.WithDepth(2), cache.WithoutData(),
			cache.WithFilter(func(path string) bool { return path != "/r/secret" }))
		defer c.Close()
		must.Do(t, c.Wait(rig.Within(t)))
		same(t, "cache", held(c), map[string]string{"/r": "", "/r/a": "", "/r/a/b": ""})
	})
}

// A znode that the client may not read should appear as soon as the client gets permission.
func TestUnreadableZnodeAppearsWithPermission(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Seed(map[string]string{"/r": "", "/r/a": "a", "/r/b": "b"})
		admin := zs.Client(t)
		must.Get(admin.SetACL(ctx, "/r/a", client.WorldACL(client.PermAdmin), client.AnyVersion))(t)
		c := cache.NewTree(recipes.On(zs.Client(t)), "/r")
		defer c.Close()
		must.Do(t, c.Wait(ctx))
		same(t, "cache", held(c), map[string]string{"/r": "", "/r/b": "b"})
		must.Get(admin.SetACL(ctx, "/r/a", client.WorldACL(client.PermAll), client.AnyVersion))(t)
		time.Sleep(time.Minute)
		same(t, "cache", held(c), map[string]string{"/r": "", "/r/a": "a", "/r/b": "b"})
	})
}

func TestReadsInFlightAreBounded(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		tree := map[string]string{"/r": ""}
		for i := range 300 {
			tree[fmt.Sprintf("/r/%d", i)] = "x"
		}
		zs.Seed(tree)
		conn := &counting{Conn: recipes.On(zs.Client(t))}
		c := cache.NewTree(conn, "/r", cache.WithInFlight(7))
		must.Do(t, c.Wait(rig.Within(t)))
		if c.Len() != 301 || conn.most.Load() != 7 {
			t.Errorf("%d znodes, %d reads at a time", c.Len(), conn.most.Load())
		}
		c.Close()
		rig.NoWatches(t, zs)
	})
}

// A large tree should need only one watch.
func TestRecursiveSetsOneWatch(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Seed(map[string]string{"/r": "", "/r/a": "", "/r/b": ""})
		c := cache.NewTree(recipes.On(zs.Client(t)), "/r", cache.WithRecursiveWatch())
		defer c.Close()
		must.Do(t, c.Wait(rig.Within(t)))
		if w := zs.Watches(); len(w) != 1 {
			t.Errorf("watches %v", w)
		}
	})
}

// The cache should work with a server that has no recursive watches.
func TestRecursiveFallsBack(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Seed(map[string]string{"/r": "", "/r/a": ""})
		zs.FailNext(zktest.Match{Op: proto.OpAddWatch}, proto.ErrUnimplemented)
		c := cache.NewTree(recipes.On(zs.Client(t)), "/r", cache.WithRecursiveWatch())
		must.Do(t, c.Wait(rig.Within(t)))
		zs.Set("/r/a", "1")
		synctest.Wait()
		same(t, "cache", held(c), map[string]string{"/r": "", "/r/a": "1"})
		c.Close()
		rig.NoWatches(t, zs)
	})
}

// A slow reader should not block other goroutines, and should learn that it has missed
// changes.
func TestSlowReaderGetsAResync(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		defer stop()
		zs.Set("/r", "")
		c := cache.NewTree(recipes.On(zs.Client(t)), "/r", cache.WithBuffer(4))
		must.Do(t, c.Wait(ctx))
		slow, quick := follow(ctx, c, time.Minute), follow(ctx, c, 0)
		for i := range 40 {
			zs.Set("/r/a", fmt.Sprint(i))
			synctest.Wait()
		}
		if nodes, kinds := quick.state(); nodes["/r/a"] != "39" || kinds[cache.Resync] != 1 {
			t.Errorf("the quick reader has seen %v: %v", kinds, nodes)
		}
		time.Sleep(time.Hour / 2)
		if nodes, kinds := slow.state(); nodes["/r/a"] != "39" || kinds[cache.Resync] < 2 {
			t.Errorf("the slow reader has seen %v: %v", kinds, nodes)
		}
		c.Close()
	})
}

func TestClientClosedEndsTheCache(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Set("/r", "kept")
		cl := zs.Client(t)
		c := cache.NewNode(recipes.On(cl), "/r")
		must.Do(t, c.Wait(rig.Within(t)))
		_ = cl.Close()
		var last error
		for _, err := range c.Changes(rig.Within(t)) {
			last = err
		}
		if !errors.Is(last, client.ErrClosed) || !errors.Is(c.Err(), client.ErrClosed) {
			t.Errorf("ended by %v", last)
		}
		same(t, "cache", held(c), map[string]string{"/r": "kept"})
		c.Close()
	})
}

func TestCacheAtEveryStep(t *testing.T) {
	for name, opts := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := func(e *steps.Env) {
				e.Server.Seed(map[string]string{"/r": "r", "/r/a": "a", "/r/a/x": "x", "/r/b": "b"})
			}
			steps.Each(t, before, func(e *steps.Env) {
				c := cache.NewTree(e.Conn, "/r", opts...)
				if err := c.Wait(e.Ctx); err != nil && !e.Canceled() {
					e.Errorf("wait: %v", err)
				}
				e.Server.Set("/r/b", "b2")
				synctest.Wait()
				e.Server.Delete("/r/a")
				e.Server.Set("/r/a/y", "y")
				synctest.Wait()
				e.Server.Delete("/r/b")
				time.Sleep(time.Minute)
				if err := c.Wait(e.Bounded()); err != nil {
					e.Errorf("it is not complete at the end: %v", err)
				}
				same(e.T, "cache", held(c), below(e.Server, "/r", 9))
				c.Close()
				rig.NoWatches(e.T, e.Server)
			})
		})
	}
}

// lagging is a connection to several servers. The server of a later session shows the
// recorded state until it is asked to sync.
type lagging struct {
	recipes.Conn
	mu    sync.Mutex
	first int64
	data  []byte
	stat  client.Stat
	done  bool // synced
}

func (l *lagging) Session(ctx context.Context) (recipes.Session, error) {
	s, err := l.Conn.Session(ctx)
	return laggingSession{s, l}, err
}

type laggingSession struct {
	recipes.Session
	l *lagging
}

func (s laggingSession) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	data, stat, w, err := s.Session.GetW(ctx, path)
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	switch {
	case err != nil:
	case s.l.first == 0:
		s.l.first, s.l.data, s.l.stat = s.ID(), data, stat
	case s.l.first != s.ID() && !s.l.done:
		return s.l.data, s.l.stat, w, nil
	}
	return data, stat, w, err
}

func (s laggingSession) Sync(ctx context.Context, path string) error {
	err := s.Session.Sync(ctx, path)
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.l.done = s.l.done || err == nil && s.l.first != 0 && s.ID() != s.l.first
	return err
}

// The cache should not go back in time, even if the server of a new session lags behind.
func TestLaggingServer(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Set("/r", "1")
		cl := zs.Client(t)
		c := cache.NewNode(&lagging{Conn: recipes.On(cl)}, "/r")
		defer c.Close()
		must.Do(t, c.Wait(ctx))
		zs.Set("/r", "2")
		synctest.Wait()
		same(t, "cache", held(c), map[string]string{"/r": "2"})
		zs.ExpireSession(cl.Session().ID)
		time.Sleep(time.Minute)
		must.Do(t, c.Wait(ctx))
		same(t, "cache", held(c), map[string]string{"/r": "2"})
	})
}

// Without a session, the cache should show the last known state and report that it is not
// complete.
func TestIncompleteWithoutASession(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Set("/r", "1")
		cl := zs.Client(t)
		c := cache.NewNode(recipes.On(cl), "/r")
		defer c.Close()
		must.Do(t, c.Wait(ctx))
		accept := zs.RefuseConnections()
		zs.ExpireSession(cl.Session().ID)
		time.Sleep(5 * time.Minute)
		if c.Complete() {
			t.Error("complete")
		}
		same(t, "cache", held(c), map[string]string{"/r": "1"})
		accept()
		must.Do(t, c.Wait(ctx))
	})
}

// No watch reports that the client has lost the permission to read a znode. After reading
// everything again, we should not show such a znode in its old state.
func TestUnreadableZnodeDisappears(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Seed(map[string]string{"/r": "", "/r/a": "a"})
		admin := zs.Client(t)
		cl := zs.Client(t)
		c := cache.NewTree(recipes.On(cl), "/r")
		defer c.Close()
		must.Do(t, c.Wait(ctx))
		must.Get(admin.SetACL(ctx, "/r/a", client.WorldACL(client.PermAdmin), client.AnyVersion))(t)
		zs.ExpireSession(cl.Session().ID)
		time.Sleep(time.Minute)
		must.Do(t, c.Wait(ctx))
		same(t, "cache", held(c), map[string]string{"/r": ""})
	})
}
