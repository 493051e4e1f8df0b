package cache_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// held returns the contents of a cache, as path -> data.
func held(c *cache.Cache) map[string]string {
	m := map[string]string{}
	for n := range c.All() {
		m[n.Path] = string(n.Data)
	}
	return m
}

// below returns the server's data at path and below.
func below(zs *zktest.Server, path string, depth int) map[string]string {
	m := map[string]string{}
	if !zs.Exists(path) {
		return m
	}
	m[path] = zs.Get(path)
	if depth > 0 {
		for _, name := range zs.Children(path) {
			maps.Copy(m, below(zs, recipe.Join(path, name), depth-1))
		}
	}
	return m
}

// same fails if two trees differ.
func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	paths := slices.Collect(maps.Keys(want))
	paths = slices.AppendSeq(paths, maps.Keys(got))
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		g, isHeld := got[p]
		w, exists := want[p]
		if g != w || isHeld != exists {
			t.Errorf("%s: %s is %q (%v), not %q (%v)", what, p, g, isHeld, w, exists)
		}
	}
}

// replica applies the changes of a cache as a reader would.
type replica struct {
	mu    sync.Mutex
	nodes map[string]string
	kinds map[cache.Kind]int
	bad   []string
}

func follow(ctx context.Context, c *cache.Cache, pause time.Duration) *replica {
	r := &replica{nodes: map[string]string{}, kinds: map[cache.Kind]int{}}
	go func() {
		for change, err := range c.Changes(ctx) {
			if err != nil {
				return
			}
			r.apply(c, change)
			time.Sleep(pause)
		}
	}()
	return r
}

func (r *replica) apply(c *cache.Cache, change cache.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kinds[change.Kind]++
	path := change.Node.Path
	switch change.Kind {
	case cache.Resync:
		r.nodes = held(c)
	case cache.Added, cache.Updated:
		r.nodes[path] = string(change.Node.Data)
		if r.kinds[cache.Resync] == 1 && change.Kind == cache.Updated && change.Node.Stat.Mzxid <= change.Old.Stat.Mzxid {
			r.bad = append(r.bad, fmt.Sprintf("%s went back in time", path))
		}
	case cache.Removed:
		delete(r.nodes, path)
	}
}

func (r *replica) state() (map[string]string, map[cache.Kind]int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.nodes), maps.Clone(r.kinds)
}

// counting is a Conn that counts the reads in flight.
type counting struct {
	recipes.Conn
	now, most atomic.Int64
}

func (c *counting) Session(ctx context.Context) (recipes.Session, error) {
	s, err := c.Conn.Session(ctx)
	return countingSession{s, c}, err
}

type countingSession struct {
	recipes.Session
	c *counting
}

// enter takes some fake time, so that concurrent reads overlap.
func (s countingSession) enter() func() {
	n := s.c.now.Add(1)
	for most := s.c.most.Load(); n > most && !s.c.most.CompareAndSwap(most, n); most = s.c.most.Load() {
		continue
	}
	time.Sleep(time.Millisecond)
	return func() { s.c.now.Add(-1) }
}

func (s countingSession) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	defer s.enter()()
	return s.Session.GetW(ctx, path)
}

func (s countingSession) ChildrenW(ctx context.Context, path string) ([]string, client.Stat, recipes.Watch, error) {
	defer s.enter()()
	return s.Session.ChildrenW(ctx, path)
}

// tardy is a Conn that delays and reorders requests and replies, as can happen when
// goroutines are not scheduled immediately.
type tardy struct {
	recipes.Conn
	pause func()
}

func (c tardy) Session(ctx context.Context) (recipes.Session, error) {
	s, err := c.Conn.Session(ctx)
	return tardySession{s, c.pause}, err
}

type tardySession struct {
	recipes.Session
	pause func()
}

func (s tardySession) WatchRecursive(ctx context.Context, path string) (recipes.Watch, error) {
	return s.Session.(recipes.RecursiveWatcher).WatchRecursive(ctx, path)
}

func (s tardySession) Get(ctx context.Context, path string) ([]byte, client.Stat, error) {
	s.pause()
	defer s.pause()
	return s.Session.Get(ctx, path)
}

func (s tardySession) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	s.pause()
	defer s.pause()
	return s.Session.GetW(ctx, path)
}

func (s tardySession) Children(ctx context.Context, path string) ([]string, client.Stat, error) {
	s.pause()
	defer s.pause()
	return s.Session.Children(ctx, path)
}

func (s tardySession) ChildrenW(ctx context.Context, path string) ([]string, client.Stat, recipes.Watch, error) {
	s.pause()
	defer s.pause()
	return s.Session.ChildrenW(ctx, path)
}

func (s tardySession) ExistsW(ctx context.Context, path string) (client.Stat, bool, recipes.Watch, error) {
	s.pause()
	defer s.pause()
	return s.Session.ExistsW(ctx, path)
}
