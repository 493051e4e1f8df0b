package gozk_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

// Both clients use the same line.
func TestMutexBetweenClients(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		var inside atomic.Int32
		order := make(chan int, 8)
		for i := range 8 {
			p := []func(*testing.T, *zktest.Server) *peer{ours, open}[i%2](t, zs)
			go func() {
				l, err := lock.NewMutex(p, "/l").Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two clients hold the mutex")
				}
				time.Sleep(time.Minute) // several session timeouts
				inside.Add(-1)
				order <- i
				if err := l.Release(ctx); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for want := range 8 {
			if got := <-order; got != want {
				t.Errorf("%d got the mutex as number %d", got, want)
			}
		}
		synctest.Wait()
		if c := rig.Children(zs, "/l"); len(c) != 0 {
			t.Errorf("left behind: %v", c)
		}
		if w := zs.Watches(); len(w) != 0 {
			t.Errorf("watches are left: %v", w)
		}
	})
}

func TestReadersAndWriters(t *testing.T) {
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		m := lock.NewRWMutex(open(t, zs), "/rw")
		other := lock.NewRWMutex(open(t, zs), "/rw")
		a, b := must.Get(m.Read(ctx))(t), must.Get(other.Read(ctx))(t)
		if _, err := other.TryWrite(ctx); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("written beside readers: %v", err)
		}
		written := make(chan *lock.Lease)
		go func() { written <- must.Get(other.Write(ctx))(t) }()
		must.Do(t, a.Release(ctx))
		must.Do(t, b.Release(ctx))
		w := <-written
		r := must.Get(other.Downgrade(ctx, w))(t)
		c := must.Get(m.Read(ctx))(t)
		must.Do(t, r.Release(ctx))
		must.Do(t, c.Release(ctx))
	})
}

func TestSemaphore(t *testing.T) {
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		var inside, most atomic.Int32
		done := make(chan struct{})
		for range 8 {
			p := open(t, zs)
			go func() {
				defer func() { done <- struct{}{} }()
				l, err := lock.NewSemaphore(p, "/s", 3).Acquire(ctx)
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
		for range 8 {
			<-done
		}
		if most.Load() != 3 {
			t.Errorf("%d leases were held at a time", most.Load())
		}
	})
}

func TestExpiryEndsALock(t *testing.T) {
	reconnects(t)
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		p := open(t, zs)
		m := lock.NewMutex(p, "/l")
		l := must.Get(m.Acquire(ctx))(t)
		zs.ExpireSession(p.session(t))
		<-l.Done()
		if !errors.Is(l.Err(), lock.ErrLost) {
			t.Errorf("the lease ended with %v", l.Err())
		}
		again := must.Get(m.Acquire(ctx))(t) // in a new session
		if again.Token() <= l.Token() {
			t.Errorf("token %d after %d", again.Token(), l.Token())
		}
		must.Do(t, again.Release(ctx))
		if err := l.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release of a lost lock: %v", err)
		}
	})
}

// If a waiter's session expires, the waiter should queue again in the next session.
func TestExpiryOfAWaiter(t *testing.T) {
	reconnects(t)
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		holder := must.Get(lock.NewMutex(open(t, zs), "/l").Acquire(ctx))(t)
		p := open(t, zs)
		waiting := make(chan *lock.Lease)
		go func() { waiting <- must.Get(lock.NewMutex(p, "/l").Acquire(ctx))(t) }()
		synctest.Wait()
		zs.ExpireSession(p.session(t))
		time.Sleep(time.Minute)
		if n := len(rig.Children(zs, "/l")); n != 2 {
			t.Errorf("%d in line", n)
		}
		must.Do(t, holder.Release(ctx))
		must.Do(t, (<-waiting).Release(ctx))
	})
}

func TestDisconnect(t *testing.T) {
	reconnects(t)
	each(t, func(t *testing.T, zs *zktest.Server, open func(*testing.T, *zktest.Server) *peer) {
		ctx := rig.Within(t)
		for _, policy := range []recipes.LossPolicy{recipes.LostBeforeExpiry, recipes.LostOnDisconnect, recipes.LostOnExpiry} {
			p := open(t, zs)
			l := must.Get(lock.NewMutex(p, "/l", lock.WithLossPolicy(policy)).Acquire(ctx))(t)
			zs.DropConnection(p.session(t))
			time.Sleep(time.Minute)
			if lost := l.Err() != nil; lost != (policy == recipes.LostOnDisconnect) || rig.Closed(l.Done()) != lost {
				t.Errorf("policy %d: %v", policy, l.Err())
			}
			if l.Err() != nil {
				_ = l.Release(ctx)
				continue
			}
			must.Do(t, l.Release(ctx))
		}
	})
}

// A holder should learn that it has lost the lock before another client can get it.
func TestLeaseEndsBeforeTheSession(t *testing.T) {
	reconnects(t)
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		p := open(t, zs)
		held := must.Get(lock.NewMutex(p, "/l").Acquire(ctx))(t)
		if left := time.Until(held.Deadline()); left < sessionTimeout/3 || left > sessionTimeout*2/3+time.Second {
			t.Errorf("%v left of %v", left, sessionTimeout)
		}
		release := p.net.hold()
		second := must.Get(lock.NewMutex(ours(t, zs), "/l").Acquire(ctx))(t)
		if !rig.Closed(held.Done()) || !errors.Is(held.Err(), lock.ErrLost) {
			t.Errorf("another client holds the lock, and the first got %v", held.Err())
		}
		release()
		if err := held.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release of a lost lock: %v", err)
		}
		must.Do(t, second.Release(ctx))
	})
}

func TestLocksAtEveryStep(t *testing.T) {
	reconnects(t)
	t.Parallel()
	for name, acquire := range map[string]func(recipes.Conn) func(context.Context) (*lock.Lease, error){
		"mutex": func(c recipes.Conn) func(context.Context) (*lock.Lease, error) { return lock.NewMutex(c, "/l").Acquire },
		"write": func(c recipes.Conn) func(context.Context) (*lock.Lease, error) { return lock.NewRWMutex(c, "/l").Write },
		"semaphore": func(c recipes.Conn) func(context.Context) (*lock.Lease, error) {
			return lock.NewSemaphore(c, "/l", 1).Acquire
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps.EachOver(t, overGozk, nil, func(e *steps.Env) { atStep(e, acquire) })
		})
	}
}

// atStep makes a contender with an injected fault wait for another, and fails unless
// other clients can continue afterwards.
func atStep(e *steps.Env, acquire func(recipes.Conn) func(context.Context) (*lock.Lease, error)) {
	other := acquire(recipes.On(e.Other))
	holder, err := other(e.Bounded())
	if err != nil {
		e.Fatal(err)
	}
	go func() {
		time.Sleep(time.Second)
		_ = holder.Release(e.Bounded())
	}()
	l, err := acquire(e.Conn)(e.Ctx)
	switch {
	case err == nil && !errors.Is(holder.Err(), lock.ErrReleased):
		e.Error("two clients hold the lock")
	case err == nil:
		_ = l.Release(e.Ctx)
	case !e.Canceled():
		e.Errorf("acquire: %v", err)
	}
	<-holder.Done()
	next, err := other(e.Bounded())
	if err != nil {
		e.Fatalf("no client can get the lock afterwards: %v", err)
	}
	if err := next.Release(e.Bounded()); err != nil {
		e.Error(err)
	}
	time.Sleep(5 * time.Second) // for the work in the background
	synctest.Wait()
	if left := e.Server.Ephemerals(); len(left) != 0 {
		e.Errorf("left behind: %v", left)
	}
}
