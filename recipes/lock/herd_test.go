package lock_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// counted counts the notifications that a client gets for the watches of a recipe.
type counted struct {
	recipes.Conn
	n *atomic.Int64
}

func (c counted) Session(ctx context.Context) (recipes.Session, error) {
	s, err := c.Conn.Session(ctx)
	return countedSession{s, c.n}, err
}

type countedSession struct {
	recipes.Session
	n *atomic.Int64
}

func (s countedSession) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	data, stat, w, err := s.Session.GetW(ctx, path)
	return data, stat, s.count(w, err), err
}

func (s countedSession) ChildrenW(ctx context.Context, path string) ([]string, client.Stat, recipes.Watch, error) {
	names, stat, w, err := s.Session.ChildrenW(ctx, path)
	return names, stat, s.count(w, err), err
}

func (s countedSession) count(w recipes.Watch, err error) recipes.Watch {
	if err != nil {
		return w
	}
	events := make(chan client.Event, 1)
	go func() {
		defer close(events)
		if e, ok := <-w.Events(); ok {
			s.n.Add(1)
			events <- e
		}
	}()
	return countedWatch{w, events}
}

type countedWatch struct {
	recipes.Watch
	events chan client.Event
}

func (w countedWatch) Events() <-chan client.Event { return w.events }

// parentWatcher waits naively: it watches the directory, and checks whether it is first
// whenever anything changes there. It begins to watch at start, because otherwise every new
// znode would wake the herd, too.
func parentWatcher(ctx context.Context, conn recipes.Conn, dir string, start <-chan struct{}) error {
	s, err := conn.Session(ctx)
	if err != nil {
		return err
	}
	mine, err := s.Create(ctx, dir+"/n-", nil, recipes.EphemeralSequential, nil)
	if err != nil {
		return err
	}
	<-start
	for {
		names, _, w, err := s.ChildrenW(ctx, dir)
		if err != nil {
			return err
		}
		slices.Sort(names)
		if strings.HasSuffix(mine, "/"+names[0]) {
			w.Remove(ctx)
			return nil
		}
		select {
		case <-w.Events():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestHerd measures how many waiters a release wakes. docs/guide/locks.md has the numbers.
func TestHerd(t *testing.T) {
	waiters := 100
	if os.Getenv("ZKGO_REQUIRE") != "" { // it is slow
		waiters = 1000
	}
	for _, way := range []struct {
		name    string
		wait    func(ctx context.Context, conn recipes.Conn, start <-chan struct{}) error
		release func(zs *zktest.Server)
		want    int64
	}{
		{"the place before", func(ctx context.Context, conn recipes.Conn, _ <-chan struct{}) error {
			_, err := lock.NewMutex(conn, "/l").Acquire(ctx)
			return err
		}, func(zs *zktest.Server) {
			names := rig.Children(zs, "/l")
			zs.Delete("/l/" + names[slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "-0000000000") })])
		}, 1},
		{"the directory", func(ctx context.Context, conn recipes.Conn, start <-chan struct{}) error {
			return parentWatcher(ctx, conn, "/l", start)
		}, func(zs *zktest.Server) { zs.Delete("/l/n-0000000000") }, int64(waiters)},
		{"the one znode", func(ctx context.Context, conn recipes.Conn, _ <-chan struct{}) error {
			_, err := lock.NewSimple(conn, "/l").Acquire(ctx)
			return err
		}, func(zs *zktest.Server) { zs.Delete("/l") }, int64(waiters)},
	} {
		t.Run(way.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				zs := zktest.Run(t)
				ctx, cancel := context.WithCancel(context.Background())
				if way.name == "the directory" {
					zs.Set("/l", "")
				}
				holder, _ := on(t, zs)
				now := make(chan struct{})
				close(now)
				must.Do(t, way.wait(ctx, holder, now))
				start := make(chan struct{})
				var told atomic.Int64
				for range waiters {
					conn, _ := on(t, zs)
					go func() { _ = way.wait(ctx, counted{conn, &told}, start) }()
				}
				synctest.Wait()
				close(start)
				synctest.Wait()
				told.Store(0)
				way.release(zs)
				synctest.Wait()
				t.Logf("watching %s: one release wakes %d of %d", way.name, told.Load(), waiters)
				if n := told.Load(); n != way.want {
					t.Errorf("%d notifications instead of %d", n, way.want)
				}
				cancel()
				time.Sleep(time.Minute)
			})
		})
	}
}
