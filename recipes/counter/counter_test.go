package counter_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/counter"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func on(t *testing.T, zs *zktest.Server) recipes.Conn { return recipes.On(zs.Client(t)) }

func TestNothingIsLostBetweenMany(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		const clients, each = 8, 10
		done := make(chan []int64)
		for i := range clients {
			n := counter.NewLong(on(t, zs), "/dir/n", counter.WithLock("/locks/n"))
			if i%2 == 0 {
				n = counter.NewLong(on(t, zs), "/dir/n")
			}
			go func() {
				var got []int64
				for range each {
					r, err := n.Add(ctx, 1)
					if err != nil || !r.Succeeded || r.Post != r.Pre+1 {
						t.Errorf("%+v, %v", r, err)
					}
					got = append(got, r.Post)
				}
				done <- got
			}()
		}
		var all []int64
		for range clients {
			all = append(all, <-done...)
		}
		slices.Sort(all)
		for i, n := range all {
			if n != int64(i+1) {
				t.Fatalf("results %v", all)
			}
		}
		if zs.Get("/dir/n") != "\x00\x00\x00\x00\x00\x00\x00\x50" {
			t.Errorf("data %q", zs.Get("/dir/n"))
		}
	})
}

func TestChanges(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		n := counter.NewInt(on(t, zs), "/n")
		expect := func(what string, r counter.Result[int32], err error, ok bool, pre, post int32) {
			t.Helper()
			if err != nil || r.Succeeded != ok || r.Pre != pre || r.Post != post {
				t.Errorf("%s: %+v, %v", what, r, err)
			}
		}
		r, err := n.CompareAndSet(ctx, 0, 1)
		expect("compare with nothing", r, err, false, 0, 0)
		if got, err := n.Get(ctx); got != 0 || err != nil {
			t.Errorf("get: %d %v", got, err)
		}
		for i, want := range []bool{true, false} {
			if ok, err := n.Initialize(ctx, 5); err != nil || ok != want {
				t.Errorf("initialize %d: %v %v", i, ok, err)
			}
		}
		r, err = n.CompareAndSet(ctx, 5, 7)
		expect("compare and set", r, err, true, 5, 7)
		r, err = n.CompareAndSet(ctx, 5, 8)
		expect("compare and set", r, err, false, 7, 0)
		r, err = n.Set(ctx, -1)
		expect("set", r, err, true, 7, -1)
		r, err = n.Add(ctx, -2)
		expect("add", r, err, true, -1, -3)
		if zs.Get("/n") != "\xff\xff\xff\xfd" {
			t.Errorf("data %q", zs.Get("/n"))
		}
		if _, err := counter.NewLong(on(t, zs), "/n").Get(ctx); err == nil {
			t.Error("four bytes were accepted as a long")
		}
	})
}

func TestOthersAreAlwaysFaster(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Set("/n", "")
		lose := func() {
			for range 3 {
				zs.FailNext(zktest.Match{Op: proto.OpSetData, Path: "/n"}, proto.ErrBadVersion)
			}
		}
		lose()
		r, err := counter.NewLong(on(t, zs), "/n", counter.WithRetry(client.RetryN(3, time.Second))).Add(ctx, 1)
		if err != nil || r.Succeeded || r.Tries != 3 {
			t.Errorf("without a lock: %+v, %v", r, err)
		}
		lose()
		r, err = counter.NewLong(on(t, zs), "/n", counter.WithLock("/l")).Add(ctx, 1)
		if err != nil || !r.Succeeded || !r.Locked || r.Tries != 4 || len(zs.Children("/l")) != 0 {
			t.Errorf("with a lock: %+v, %v", r, err)
		}
	})
}

func TestCachedNumbersAreUnique(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		seen := map[int64]bool{}
		zs.LoseReply(zktest.Match{Op: proto.OpSetData, Nth: 2})
		for range 3 {
			c := must.Get(counter.NewCached(counter.NewLong(on(t, zs), "/n"), 10))(t)
			for range 25 {
				n := must.Get(c.Next(ctx))(t)
				if seen[n] || n < 1 || len(seen) == 0 && n != 1 {
					t.Errorf("%d for the second time, or as the first number", n)
				}
				seen[n] = true
			}
		}
		if n := zs.Requests(zktest.Match{Op: proto.OpSetData}); n > 12 {
			t.Errorf("%d writes for %d numbers", n, len(seen))
		}
		if _, err := counter.NewCached(counter.NewLong(on(t, zs), "/n"), 0); err == nil {
			t.Error("blocks of nothing")
		}
	})
}

func TestSharedCount(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		watcher := zs.Client(t)
		a, b := counter.NewSharedCount(on(t, zs), "/d/c", 3), counter.NewSharedCount(recipes.On(watcher), "/d/c", 9)
		seen := make(chan int32, 10)
		go func() {
			for v, err := range b.Changes(ctx) {
				if err != nil {
					t.Error(err)
				}
				seen <- v.Value
			}
			close(seen)
		}()
		synctest.Wait()
		first := must.Get(a.Get(ctx))(t)
		synctest.Wait() // otherwise the watcher combines this change and the next
		second, ok, err := b.TrySet(ctx, first, 4)
		if err != nil || !ok || second.Value != 4 || second.Zxid <= first.Zxid {
			t.Errorf("%+v %v %v", second, ok, err)
		}
		synctest.Wait()
		if now, ok, err := a.TrySet(ctx, first, 5); err != nil || ok || now != second {
			t.Errorf("a try with an old version: %+v %v %v", now, ok, err)
		}
		zs.ExpireSession(watcher.Session().ID)
		must.Do(t, a.Set(ctx, -6))
		time.Sleep(time.Minute)
		if zs.Get("/d/c") != "\xff\xff\xff\xfa" {
			t.Errorf("data %q", zs.Get("/d/c"))
		}
		stop()
		if got := slices.Collect(func(yield func(int32) bool) {
			for v := range seen {
				yield(v)
			}
		}); !slices.Equal(got, []int32{3, 4, -6}) {
			t.Errorf("seen: %v", got)
		}
		synctest.Wait()
		if w := zs.Watches(); len(w) != 0 {
			t.Errorf("watches are left: %v", w)
		}
	})
}

func TestAtomicAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		n, done, unknown := counter.NewLong(e.Conn, "/dir/n"), int64(0), int64(0)
		for range 2 {
			r, err := n.Add(e.Ctx, 1)
			switch {
			case err == nil && r.Succeeded && r.Post == r.Pre+1:
				done++
			case errors.Is(err, client.ErrUnknownOutcome):
				unknown++
			case err == nil || !e.Canceled():
				e.Errorf("add: %+v, %v", r, err)
			}
		}
		got, err := counter.NewLong(recipes.On(e.Other), "/dir/n").Get(e.Bounded())
		if err != nil || got < done || got > done+unknown {
			e.Errorf("%d after %d additions and %d of unknown outcome, %v", got, done, unknown, err)
		}
		if unknown > 0 && (e.Fault == steps.LostRequest || e.Fault == steps.Expiry) {
			e.Error("the outcome of a failed change is unknown")
		}
	})
}

// No number should be assigned twice, whatever happens to a block.
func TestCachedAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		given := map[int64]bool{}
		take := func(ctx context.Context, conn recipes.Conn, canceled bool) {
			c, err := counter.NewCached(counter.NewLong(conn, "/dir/n"), 3)
			if err != nil {
				e.Fatal(err)
			}
			last := int64(0)
			for range 7 {
				n, err := c.Next(ctx)
				if err != nil {
					if !canceled {
						e.Errorf("next: %v", err)
					}
					continue
				}
				if given[n] || n <= last {
					e.Errorf("%d after %d; given %v", n, last, given)
				}
				given[n], last = true, n
			}
		}
		take(e.Ctx, e.Conn, e.Canceled())
		time.Sleep(time.Second) // an abandoned request may still be executed
		take(e.Bounded(), recipes.On(e.Other), false)
	})
}

func TestSharedValueAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		v := counter.NewSharedValue(e.Conn, "/dir/v", []byte("seed"))
		err := v.Set(e.Ctx, []byte("new"))
		if err != nil && !e.Canceled() && !errors.Is(err, client.ErrUnknownOutcome) {
			e.Errorf("set: %v", err)
		}
		now, gerr := counter.NewSharedValue(recipes.On(e.Other), "/dir/v", []byte("seed")).Get(e.Bounded())
		if gerr != nil || err == nil && string(now.Value) != "new" || string(now.Value) != "new" && string(now.Value) != "seed" {
			e.Errorf("%q after %v, %v", now.Value, err, gerr)
		}
		if e.Canceled() {
			return
		}
		for now, err := range v.Changes(e.Ctx) {
			if err != nil || len(now.Value) == 0 {
				e.Errorf("changes: %q %v", now.Value, err)
			}
			break
		}
		synctest.Wait()
		if w := e.Server.Watches(); len(w) != 0 {
			e.Errorf("watches are left: %v", w)
		}
	})
}
