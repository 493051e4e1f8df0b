package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// Each test reproduces a failure that users of other libraries have reported. We should have
// none.

// asynchronously calls f and returns a channel with the outcome.
func asynchronously(ctx context.Context, f func(context.Context) (*lock.Lease, error)) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		l, err := f(ctx)
		ch <- outcome{l, err}
	}()
	return ch
}

type outcome struct {
	l   *lock.Lease
	err error
}

// next returns the lease from a channel.
func next(t *testing.T, ch <-chan outcome) *lock.Lease {
	t.Helper()
	o := <-ch
	must.Do(t, o.err)
	return o.l
}

// CURATOR-206, docker/libkv 156: a holder that was disconnected until its session
// expired still believes that it holds the lock, while another client does.
func TestCutOffHolderLosesTheLockFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, cut := severed(t, zs)
		other, _ := on(t, zs)
		held := must.Get(lock.NewMutex(conn, "/l").Acquire(ctx))(t)
		work, cancel := held.Context(ctx)
		defer cancel()
		resume := cut()
		second := must.Get(lock.NewMutex(other, "/l").Acquire(ctx))(t)
		if work.Err() == nil || !errors.Is(context.Cause(work), lock.ErrLost) {
			t.Errorf("another client holds the lock, and the first one continues: %v", context.Cause(work))
		}
		if err := held.Set(ctx, "/", nil, client.AnyVersion); !errors.Is(err, lock.ErrLost) {
			t.Errorf("a write of the first: %v", err)
		}
		resume()
		time.Sleep(time.Minute)
		if held.Err() == nil || second.Err() != nil {
			t.Errorf("after the reconnect: %v, %v", held.Err(), second.Err())
		}
		must.Do(t, second.Release(ctx))
		_ = held.Release(ctx)
	})
}

// CURATOR-604: the library grants the lock based on an existing znode that belongs to
// another session, and the end of that session deletes it.
func TestNoLockOnAZnodeOfAnotherSession(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		_, former := on(t, zs)
		verify := zs.DelayNext(zktest.Match{Op: proto.OpGetData, Path: "/l/*"}, time.Second)
		got := asynchronously(ctx, lock.NewMutex(conn, "/l").Acquire)
		verify.Wait()
		name := "/l/" + rig.Children(zs, "/l")[0]
		zs.Delete(name)
		must.Get(former.Create(ctx, name, nil, client.Ephemeral))(t)
		time.Sleep(2 * time.Second)
		select {
		case o := <-got:
			t.Fatalf("the lock was granted on another's znode: %v", o.err)
		default:
		}
		must.Do(t, former.Close())
		l := next(t, got)
		if l.Path() == name {
			t.Error("it mistook that znode for its own")
		}
		must.Do(t, l.Release(ctx))
	})
}

// CURATOR-79: a client that is interrupted while its znode is being created leaves the
// znode, which blocks all other clients.
func TestInterruptedCreateLeavesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		zs.Set("/l", "")
		ctx, interrupt := context.WithCancel(rig.Within(t))
		lost := zs.LoseReply(zktest.Match{Op: proto.OpCreate, Path: "/l/*"})
		accept := zs.RefuseConnections() // no client can look for the znode before the interrupt
		got := asynchronously(ctx, lock.NewMutex(conn, "/l").Acquire)
		lost.Wait()
		synctest.Wait()
		interrupt()
		if o := <-got; !errors.Is(o.err, context.Canceled) {
			t.Fatalf("interrupted: %v", o.err)
		}
		if left := rig.Children(zs, "/l"); len(left) != 1 {
			t.Fatalf("there was nothing to remove: %v", left)
		}
		accept()
		short, cancel := context.WithTimeout(rig.Within(t), 5*time.Second) // much less than the session timeout
		defer cancel()
		l := must.Get(lock.NewMutex(other, "/l").Acquire(short))(t)
		must.Do(t, l.Release(short))
		if left := rig.Children(zs, "/l"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// CURATOR-486, CURATOR-678: a release that fails because of a lost connection leaves
// the znode, and no client, including the one that released the lock, gets the lock
// again.
func TestReleaseDuringConnectionLoss(t *testing.T) {
	for _, fault := range []struct {
		name string
		lose func(*zktest.Server, zktest.Match) *zktest.Fault
	}{{"request", (*zktest.Server).LoseNext}, {"reply", (*zktest.Server).LoseReply}} {
		t.Run(fault.name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				ctx := lock.WithOwner(rig.Within(t))
				conn, _ := on(t, zs)
				m := lock.NewMutex(conn, "/l")
				l := must.Get(m.Acquire(ctx))(t)
				fault.lose(zs, zktest.Match{Op: proto.OpDelete, Path: "/l/*"})
				if err := l.Release(ctx); !errors.Is(err, client.ErrConnectionLoss) {
					t.Errorf("release: %v", err)
				}
				short, cancel := context.WithTimeout(ctx, 5*time.Second)
				defer cancel()
				l = must.Get(m.Acquire(short))(t)
				must.Do(t, l.Release(short))
				if left := rig.Children(zs, "/l"); len(left) != 0 {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// python-zk/kazoo 732: a failed TryAcquire that loses its connection while it deletes its
// znode leaves the znode, which later holds the lock although no client uses it.
func TestFailedTryLeavesNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewMutex(other, "/l").Acquire(ctx))(t)
		zs.LoseNext(zktest.Match{Op: proto.OpDelete, Path: "/l/*"})
		if _, err := lock.NewMutex(conn, "/l").TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
			t.Fatalf("try: %v", err)
		}
		time.Sleep(5 * time.Second)
		if left := rig.Children(zs, "/l"); len(left) != 1 {
			t.Errorf("left: %v", left)
		}
		must.Do(t, l.Release(ctx))
	})
}

// CURATOR-527: the predecessor disappears after the client has read the line and before it
// sets a watch, and nothing ever wakes the waiter.
func TestPredecessorDeletedBeforeWatch(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, c := on(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewMutex(other, "/l").Acquire(ctx))(t)
		watch := zs.DelayNext(zktest.Match{Op: proto.OpGetData, Path: l.Path(), Session: c.Session().ID}, time.Second)
		got := asynchronously(ctx, lock.NewMutex(conn, "/l").Acquire)
		watch.Wait()
		must.Do(t, l.Release(ctx))
		must.Do(t, next(t, got).Release(ctx))
		rig.NoWatches(t, zs)
	})
}

// hasty is a connection that calls a function as soon as it has set a watch.
type hasty struct {
	recipes.Conn
	then func(path string)
}

func (h hasty) Session(ctx context.Context) (recipes.Session, error) {
	s, err := h.Conn.Session(ctx)
	return hastySession{s, h.then}, err
}

type hastySession struct {
	recipes.Session
	then func(path string)
}

func (s hastySession) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	data, stat, w, err := s.Session.GetW(ctx, path)
	s.then(path)
	return data, stat, w, err
}

// CURATOR-527, as reported: the predecessor disappears after the client has set the watch
// and before it waits.
func TestPredecessorDeletedBeforeWait(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewMutex(other, "/l").Acquire(ctx))(t)
		released := false
		m := lock.NewMutex(hasty{conn, func(path string) {
			if path == l.Path() {
				released = true
				must.Do(t, l.Release(ctx))
				time.Sleep(time.Second) // the event arrives
			}
		}}, "/l")
		must.Do(t, must.Get(m.Acquire(ctx))(t).Release(ctx))
		if !released {
			t.Error("nothing was tested: the predecessor was not watched")
		}
		rig.NoWatches(t, zs)
	})
}

// CURATOR-335: the connection breaks after the lease's znode was created and before the
// client reads the line. The znode stays, until all leases are used up.
func TestSemaphoreUnderNetworkStress(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		s := lock.NewSemaphore(conn, "/s", 1)
		for i := range 6 {
			m := zktest.Match{Op: proto.OpGetChildren, Path: "/s/leases"}
			if i%2 == 0 {
				zs.LoseNext(m)
			} else {
				zs.LoseReply(m)
			}
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			must.Do(t, must.Get(s.Acquire(short))(t).Release(short))
			cancel()
		}
		if left := rig.Children(zs, "/s/leases"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		rig.NoWatches(t, zs)
	})
}

// CURATOR-462: a client that is interrupted while it waits for a lease leaves its
// znode, which becomes a lease without a holder.
func TestInterruptedWaitForALease(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		held := must.Get(lock.NewSemaphore(other, "/s", 1).Acquire(ctx))(t)
		waiting, interrupt := context.WithCancel(ctx)
		got := asynchronously(waiting, lock.NewSemaphore(conn, "/s", 1).Acquire)
		synctest.Wait()
		if n := len(rig.Children(zs, "/s/leases")); n != 2 {
			t.Fatalf("%d places", n)
		}
		interrupt()
		if o := <-got; !errors.Is(o.err, context.Canceled) {
			t.Fatal(o.err)
		}
		if left := rig.Children(zs, "/s/leases"); len(left) != 1 {
			t.Errorf("places: %v", left)
		}
		must.Do(t, held.Release(ctx))
		must.Do(t, must.Get(lock.NewSemaphore(other, "/s", 1).TryAcquire(ctx))(t).Release(ctx))
	})
}

// The same without an interrupt: a client that waits for a lease loses the mutex in
// front of the leases, but not its session.
func TestSemaphoreLosesItsMutex(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		held := must.Get(lock.NewSemaphore(other, "/s", 1).Acquire(ctx))(t)
		got := asynchronously(ctx, lock.NewSemaphore(conn, "/s", 1).Acquire)
		synctest.Wait()
		zs.Delete("/s/locks/" + rig.Children(zs, "/s/locks")[0])
		time.Sleep(10 * time.Second)
		if places := rig.Children(zs, "/s/leases"); len(places) != 2 {
			t.Errorf("places of one holder and one waiter: %v", places)
		}
		must.Do(t, held.Release(ctx))
		must.Do(t, next(t, got).Release(ctx))
		if left := rig.Children(zs, "/s/leases"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// Redisson 4698: renewals fail and the holder doesn't learn of it.
func TestFailingRenewalsEndTheLease(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		l := must.Get(lock.NewLeaseLock(conn, "/l").Acquire(ctx))(t)
		began := time.Now()
		for range 100 {
			zs.FailNext(zktest.Match{Op: proto.OpSetData, Path: "/l/holder/*"}, proto.ErrNoAuth)
		}
		<-l.Done()
		if d := time.Since(began); d >= lock.DefaultLease || !errors.Is(l.Err(), lock.ErrLost) {
			t.Errorf("told after %v: %v", d, l.Err())
		}
		_ = l.Release(ctx)
	})
}

// The same after another client has deleted the lock's znode: the next renewal finds out.
func TestRenewalOfADeletedZnode(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		l := must.Get(lock.NewLeaseLock(conn, "/l").Acquire(ctx))(t)
		zs.Delete(l.Path())
		began := time.Now()
		<-l.Done()
		if d := time.Since(began); d > lock.DefaultLease/3+time.Second || !errors.Is(l.Err(), lock.ErrLost) {
			t.Errorf("told after %v: %v", d, l.Err())
		}
		_ = l.Release(ctx)
	})
}
