package naming_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/naming"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIDsAreUnique(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		var mu sync.Mutex
		given := map[int64]bool{}
		var all sync.WaitGroup
		for range 4 {
			ids := naming.NewIDs(recipes.On(zs.Client(t)), "/ids/orders", 3)
			all.Go(func() {
				last := int64(0)
				for range 50 {
					id, err := ids.Next(ctx)
					if err != nil || id <= last {
						t.Errorf("%d after %d, %v", id, last, err)
					}
					last = id
					mu.Lock()
					if given[id] {
						t.Errorf("%d was assigned twice", id)
					}
					given[id] = true
					mu.Unlock()
				}
			})
		}
		all.Wait()
		zs.Set("/ids/orders", "9223372036854775806")
		if _, err := naming.NewIDs(recipes.On(zs.Client(t)), "/ids/orders", 3).Next(ctx); !errors.Is(err, naming.ErrExhausted) {
			t.Errorf("at the end: %v", err)
		}
		zs.Set("/ids/orders", "x")
		if _, err := naming.NewIDs(recipes.On(zs.Client(t)), "/ids/orders", 3).Next(ctx); err == nil {
			t.Error("junk was accepted as a number")
		}
	})
}

func TestClaim(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c1 := zs.Client(t)
		a, b := naming.New(recipes.On(c1), "/names"), naming.New(recipes.On(zs.Client(t)), "/names")
		l := must.Get(a.Claim(ctx, "x", []byte("a")))(t)
		if _, err := b.Claim(ctx, "x", []byte("b")); !errors.Is(err, naming.ErrTaken) {
			t.Errorf("a second claim: %v", err)
		}
		if who, there, err := b.Claimed(ctx, "x"); string(who) != "a" || !there || err != nil {
			t.Errorf("claimed by %q, %v, %v", who, there, err)
		}
		zs.ExpireSession(c1.Session().ID)
		<-l.Done()
		l = must.Get(b.Claim(ctx, "x", []byte("b")))(t)
		must.Do(t, l.Release(ctx))
		if _, there, err := a.Claimed(ctx, "x"); there || err != nil {
			t.Errorf("released: %v, %v", there, err)
		}
		for _, bad := range []string{"", "a/b"} {
			if _, err := a.Claim(ctx, bad, nil); !errors.Is(err, naming.ErrBadName) {
				t.Errorf("%q: %v", bad, err)
			}
		}
	})
}

func TestReserve(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		n := naming.New(recipes.On(zs.Client(t)), "/names")
		must.Do(t, n.Free(ctx, "x", []byte("a")))
		must.Do(t, n.Reserve(ctx, "x", []byte("a")))
		must.Do(t, n.Reserve(ctx, "x", []byte("a")))
		for _, err := range []error{n.Reserve(ctx, "x", []byte("b")), n.Free(ctx, "x", []byte("b"))} {
			if !errors.Is(err, naming.ErrTaken) {
				t.Errorf("another's: %v", err)
			}
		}
		if names, err := n.Reserved(ctx); len(names) != 1 || err != nil {
			t.Errorf("reserved %v, %v", names, err)
		}
		must.Do(t, n.Free(ctx, "x", []byte("a")))
		must.Do(t, n.Reserve(ctx, "x", []byte("b")))
	})
}

// Two clients free the same name, and another owner reserves it as soon as the first is
// done. The second client should not delete the new reservation.
func TestFreeAfterAnotherOwnerReserved(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := zs.Client(t)
		first, second := naming.New(recipes.On(c), "/names"), naming.New(recipes.On(zs.Client(t)), "/names")
		must.Do(t, first.Reserve(ctx, "x", []byte("a")))
		zs.DelayNext(zktest.Match{Op: proto.OpDelete, Path: "/names/reserved/x", Session: c.Session().ID}, 2*time.Second)
		zs.DelayNext(zktest.Match{Op: proto.OpMulti, Path: "/names/reserved/x", Session: c.Session().ID}, time.Second)
		freed := make(chan error)
		go func() { freed <- first.Free(ctx, "x", []byte("a")) }()
		synctest.Wait()
		must.Do(t, second.Free(ctx, "x", []byte("a")))
		must.Do(t, second.Reserve(ctx, "x", []byte("b")))
		must.Do(t, <-freed)
		if !zs.Exists("/names/reserved/x") || zs.Get("/names/reserved/x") != "b" {
			t.Error("the other's reservation was ended")
		}
	})
}

// If the reply to a delete was lost and another owner has the name by then, we should tell
// the former owner that the name is free.
func TestFreeWithoutAnAnswer(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		first, second := naming.New(recipes.On(zs.Client(t)), "/names"), naming.New(recipes.On(zs.Client(t)), "/names")
		must.Do(t, first.Reserve(ctx, "x", []byte("a")))
		lost := zs.LoseReply(zktest.Match{Op: proto.OpMulti, Path: "/names/reserved/x"})
		accept := zs.RefuseConnections()
		freed := make(chan error)
		go func() { freed <- first.Free(ctx, "x", []byte("a")) }()
		lost.Wait()
		must.Do(t, second.Reserve(ctx, "x", []byte("b")))
		accept()
		must.Do(t, <-freed)
	})
}

func TestNamingAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		n, other := naming.New(e.Conn, "/names"), naming.New(recipes.On(e.Other), "/names")
		ids := naming.NewIDs(e.Conn, "/ids", 2)
		given := map[int64]bool{}
		for range 3 {
			if id, err := ids.Next(e.Ctx); err == nil && !given[id] {
				given[id] = true
			} else if !e.Canceled() {
				e.Errorf("id %d, %v", id, err)
			}
		}
		if id, err := naming.NewIDs(recipes.On(e.Other), "/ids", 2).Next(e.Bounded()); err != nil || given[id] {
			e.Errorf("another's id %d, %v; given %v", id, err, given)
		}
		if err := n.Reserve(e.Ctx, "r", []byte("a")); err != nil && !e.Canceled() {
			e.Errorf("reserve: %v", err)
		}
		l, err := n.Claim(e.Ctx, "c", []byte("a"))
		if err == nil {
			_ = l.Release(e.Bounded())
		} else if !e.Canceled() {
			e.Errorf("claim: %v", err)
		}
		time.Sleep(time.Minute)
		l, err = other.Claim(e.Bounded(), "c", nil)
		if err != nil {
			e.Fatalf("no client can claim it afterwards: %v", err)
		}
		_ = l.Release(e.Bounded())
		if err := n.Reserve(e.Bounded(), "r", []byte("a")); err != nil {
			e.Errorf("reserve again: %v", err)
		}
		if w := e.Server.Watches(); len(w) != 0 {
			e.Errorf("watches are left: %v", w)
		}
	})
}
