package counter_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/counter"
	"github.com/zkgo/zkgo/recipes/naming"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// After 2³² - 1 writes, a znode has version -1, which in a request means any version. A
// client should still be able to write a value, and two clients that write at the same time
// should not silently overwrite each other's value.
func TestVersionMinusOne(t *testing.T) {
	const writers = 8
	shifted := func(t *testing.T, zs *zktest.Server) recipes.Conn {
		return rig.ShiftVersions(recipes.On(zs.Client(t)), -5)
	}
	together := func(t *testing.T, zs *zktest.Server, write func(conn recipes.Conn)) {
		var all sync.WaitGroup
		for range writers {
			conn := shifted(t, zs)
			all.Go(func() { write(conn) })
		}
		all.Wait()
	}
	t.Run("a shared value", func(t *testing.T) {
		rig.Run(t, func(t *testing.T, zs *zktest.Server) {
			ctx := rig.Within(t)
			v := counter.NewSharedValue(shifted(t, zs), "/v", []byte("seed"))
			at := false
			for i := range 10 {
				now := must.Get(v.Get(ctx))(t)
				at = at || now.Version == client.AnyVersion
				must.Do(t, v.Set(ctx, strconv.AppendInt(nil, int64(i), 10)))
				next, ok, err := v.TrySet(ctx, now, []byte("old"))
				if ok || err != nil || string(next.Value) != strconv.Itoa(i) {
					t.Fatalf("write %d: %q %v %v", i, next.Value, ok, err)
				}
			}
			if !at {
				t.Error("the version never was -1")
			}
		})
	})
	t.Run("a shared count", func(t *testing.T) {
		rig.Run(t, func(t *testing.T, zs *zktest.Server) {
			ctx := rig.Within(t)
			together(t, zs, func(conn recipes.Conn) {
				c := counter.NewSharedCount(conn, "/c", 0)
				for done := false; !done; {
					now, err := c.Get(ctx)
					if err == nil {
						_, done, err = c.TrySet(ctx, now, now.Value+1)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
			if now, err := counter.NewSharedCount(shifted(t, zs), "/c", 0).Get(ctx); err != nil || now.Value != writers {
				t.Errorf("%d of %d increments are there: %v", now.Value, writers, err)
			}
		})
	})
	t.Run("an atomic number", func(t *testing.T) {
		rig.Run(t, func(t *testing.T, zs *zktest.Server) {
			ctx := rig.Within(t)
			together(t, zs, func(conn recipes.Conn) {
				if r, err := counter.NewLong(conn, "/n").Add(ctx, 1); err != nil || !r.Succeeded {
					t.Errorf("%+v %v", r, err)
				}
			})
			if n, err := counter.NewLong(shifted(t, zs), "/n").Get(ctx); err != nil || n != writers {
				t.Errorf("%d of %d increments are there: %v", n, writers, err)
			}
			if n := zs.Children("/n"); len(n) != 0 {
				t.Errorf("left over: %v", n)
			}
		})
	})
	t.Run("ids", func(t *testing.T) {
		rig.Run(t, func(t *testing.T, zs *zktest.Server) {
			ctx := rig.Within(t)
			var mu sync.Mutex
			seen := make(map[int64]bool)
			together(t, zs, func(conn recipes.Conn) {
				id, err := naming.NewIDs(conn, "/ids", 1).Next(ctx)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[id] {
					t.Errorf("id %d, given before %v: %v", id, seen[id], err)
				}
				seen[id] = true
			})
		})
	})
}
