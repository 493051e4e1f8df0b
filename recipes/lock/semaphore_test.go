package lock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestSemaphoreHoldsNoMoreThanItsLeases(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		var inside, most atomic.Int32
		done := make(chan struct{})
		for range 12 {
			conn, _ := on(t, zs)
			go func() {
				defer func() { done <- struct{}{} }()
				l, err := lock.NewSemaphore(conn, "/s", 3).Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), inside.Add(1)))
				time.Sleep(time.Second)
				inside.Add(-1)
				if err := l.Release(ctx); err != nil {
					t.Error(err)
				}
			}()
		}
		for range 12 {
			<-done
		}
		if most.Load() != 3 {
			t.Errorf("%d leases were held at a time", most.Load())
		}
		rig.NoWatches(t, zs)
	})
}

// If two clients want all leases, they should not end up with half each.
func TestAllOrNone(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		done := make(chan error)
		for range 4 {
			conn, _ := on(t, zs)
			go func() {
				list, err := lock.NewSemaphore(conn, "/s", 4).AcquireN(ctx, 4)
				for _, l := range list {
					time.Sleep(time.Second)
					if err := l.Release(ctx); err != nil {
						t.Error(err)
					}
				}
				done <- err
			}()
		}
		for range 4 {
			must.Do(t, <-done)
		}
		rig.NoWatches(t, zs)
	})
}

// The same should be true if the client loses the mutex after it has got some of the leases.
func TestAllOrNoneWithoutTheMutex(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		two := must.Get(lock.NewSemaphore(conn, "/s", 3).AcquireN(ctx, 2))(t)
		done := make(chan error)
		all := func() {
			conn, _ := on(t, zs)
			list, err := lock.NewSemaphore(conn, "/s", 3).AcquireN(ctx, 3)
			for _, l := range list {
				time.Sleep(time.Second)
				_ = l.Release(ctx)
			}
			done <- err
		}
		go all()
		synctest.Wait()
		zs.Delete("/s/locks/" + rig.Children(zs, "/s/locks")[0])
		go all()
		for _, l := range two { // one place after another
			time.Sleep(time.Minute)
			must.Do(t, l.Release(ctx))
		}
		must.Do(t, <-done)
		must.Do(t, <-done)
		rig.NoWatches(t, zs)
	})
}

func TestSharedSemaphoreFollowsItsCount(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		zs.Set("/n", "\x00\x00\x00\x01")
		s := lock.NewSharedSemaphore(conn, "/s", "/n")
		first := must.Get(s.Acquire(ctx))(t)
		if _, err := s.TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("a second lease of one: %v", err)
		}
		second := make(chan *lock.Lease)
		go func() {
			l, err := s.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			second <- l
		}()
		synctest.Wait()
		zs.Set("/n", "\x00\x00\x00\x02")
		must.Do(t, (<-second).Release(ctx))
		must.Do(t, first.Release(ctx))
		zs.Set("/n", "two")
		if _, err := s.Acquire(ctx); err == nil {
			t.Error("a count of three bytes was accepted")
		}
		rig.NoWatches(t, zs)
	})
}

func TestSemaphoreMutexIsNotReentrant(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := lock.WithOwner(rig.Within(t))
		conn, _ := on(t, zs)
		m := lock.NewSemaphoreMutex(conn, "/m")
		l := must.Get(m.Acquire(ctx))(t)
		if _, err := m.TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("again: %v", err)
		}
		if len(rig.Children(zs, "/m/leases")) != 1 || len(rig.Children(zs, "/m/locks")) != 0 {
			t.Errorf("layout: %v, %v", rig.Children(zs, "/m/leases"), rig.Children(zs, "/m/locks"))
		}
		must.Do(t, l.Release(ctx))
	})
}

func TestSemaphoreAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		other := lock.NewSemaphore(otherConn(e), "/s", 1)
		holder, err := other.Acquire(e.Bounded())
		if err != nil {
			e.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			_ = holder.Release(e.Bounded())
		}()
		l, err := lock.NewSemaphore(e.Conn, "/s", 1).Acquire(e.Ctx)
		switch {
		case err == nil && !errors.Is(holder.Err(), lock.ErrReleased):
			e.Error("two clients hold the only lease")
		case err == nil:
			_ = l.Release(e.Ctx)
		case !e.Canceled():
			e.Errorf("acquire: %v", err)
		}
		next, err := other.Acquire(e.Bounded())
		if err != nil {
			e.Fatalf("no client can get the lease afterwards: %v", err)
		}
		_ = next.Release(e.Bounded())
		free(e, "/s/leases")
		free(e, "/s/locks")
	})
}

func TestSimpleLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		var inside atomic.Int32
		done := make(chan error)
		for range 8 {
			conn, _ := on(t, zs)
			go func() {
				l, err := lock.NewSimple(conn, "/dir/simple", lock.WithData([]byte("x"))).Acquire(ctx)
				if err == nil {
					if inside.Add(1) != 1 {
						t.Error("two clients hold the lock")
					}
					time.Sleep(time.Second)
					inside.Add(-1)
					err = l.Release(ctx)
				}
				done <- err
			}()
		}
		for range 8 {
			must.Do(t, <-done)
		}
		rig.NoWatches(t, zs)
	})
}

// Goroutines of one session should not mistake each other's znode for their own.
func TestSimpleLockInOneSession(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		s := lock.NewSimple(conn, "/simple")
		l := must.Get(s.Acquire(ctx))(t)
		if _, err := s.TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("again: %v", err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := s.Acquire(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("again, with a time-out: %v", err)
		}
		if l.Err() != nil || !zs.Exists("/simple") {
			t.Error("a client that gave up kept the lock")
		}
		must.Do(t, l.Release(ctx))
		rig.NoWatches(t, zs)
	})
}

func TestSimpleAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		l, err := lock.NewSimple(e.Conn, "/simple").Acquire(e.Ctx)
		if err != nil && !e.Canceled() {
			e.Errorf("acquire: %v", err)
		}
		if err == nil {
			_ = l.Release(e.Ctx)
		}
		next, err := lock.NewSimple(otherConn(e), "/simple").Acquire(e.Bounded())
		if err != nil {
			e.Fatalf("no client can get the lock afterwards: %v", err)
		}
		if err := next.Release(e.Bounded()); err != nil {
			e.Error(err)
		}
		time.Sleep(5 * time.Second)
		if e.Server.Exists("/simple") {
			e.Error("left behind")
		}
	})
}
