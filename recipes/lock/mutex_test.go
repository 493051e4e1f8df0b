package lock_test

import (
	"context"
	"errors"
	"regexp"
	"sync/atomic"
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
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMutexExcludesInOrder(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		var inside atomic.Int32
		order := make(chan int, 10)
		for i := range 10 {
			conn, _ := on(t, zs)
			m := lock.NewMutex(conn, "/locks/a")
			go func() {
				l, err := m.Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					t.Error("two clients hold the mutex")
				}
				time.Sleep(time.Second)
				inside.Add(-1)
				order <- i
				if err := l.Release(ctx); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait() // so that the clients queue in this order
		}
		for want := range 10 {
			if got := <-order; got != want {
				t.Errorf("%d got the mutex as number %d", got, want)
			}
		}
		synctest.Wait()
		rig.NoWatches(t, zs)
		if c := rig.Children(zs, "/locks/a"); len(c) != 0 {
			t.Errorf("left behind: %v", c)
		}
	})
}

func TestMutexLayoutIsCurators(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		conn, _ := on(t, zs)
		l := must.Get(lock.NewMutex(conn, "/locks/a", lock.WithData([]byte("me"))).Acquire(rig.Within(t)))(t)
		names := rig.Children(zs, "/locks/a")
		form := regexp.MustCompile(`^_c_[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-lock-0000000000$`)
		if len(names) != 1 || !form.MatchString(names[0]) || zs.Get("/locks/a/"+names[0]) != "me" {
			t.Errorf("znodes %v", names)
		}
		must.Do(t, l.Release(rig.Within(t)))
	})
}

func TestReleaseWakesOnlyTheNext(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		first := must.Get(lock.NewMutex(conn, "/l").Acquire(ctx))(t)
		const waiters = 50
		stop, cancel := context.WithCancel(ctx)
		for range waiters {
			conn, _ := on(t, zs)
			go func() {
				if l, err := lock.NewMutex(conn, "/l").Acquire(stop); err == nil {
					<-stop.Done()
					_ = l.Release(ctx)
				}
			}()
		}
		synctest.Wait()
		if n := len(zs.Watches()); n != waiters+1 {
			t.Errorf("%d watches for %d waiters and the holder", n, waiters)
		}
		zs.ForgetRequests()
		must.Do(t, first.Release(ctx))
		synctest.Wait()
		// One client reads the line, and then its own znode.
		if n := zs.Requests(zktest.Match{Op: proto.OpGetChildren}); n != 1 {
			t.Errorf("%d lists were asked for after one release", n)
		}
		cancel()
		synctest.Wait()
		time.Sleep(time.Second)
		rig.NoWatches(t, zs)
	})
}

func TestMutexIsReentrantForAnOwner(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		conn, _ := on(t, zs)
		m := lock.NewMutex(conn, "/l")
		ctx := lock.WithOwner(rig.Within(t))
		outer, inner := must.Get(m.Acquire(ctx))(t), must.Get(m.Acquire(ctx))(t)
		if outer.Token() != inner.Token() || len(rig.Children(zs, "/l")) != 1 {
			t.Error("the second lease is another lock")
		}
		if _, err := m.TryAcquire(lock.WithOwner(rig.Within(t))); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("another owner: %v", err)
		}
		if _, err := m.TryAcquire(rig.Within(t)); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("without an owner: %v", err)
		}
		must.Do(t, outer.Release(ctx))
		if err := outer.Release(ctx); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("second release: %v", err)
		}
		if inner.Err() != nil || len(rig.Children(zs, "/l")) != 1 {
			t.Error("the first release released the lock")
		}
		must.Do(t, inner.Release(ctx))
		if err := inner.Err(); !errors.Is(err, lock.ErrReleased) || len(rig.Children(zs, "/l")) != 0 {
			t.Errorf("after the last release: %v, %v", err, rig.Children(zs, "/l"))
		}
		again := must.Get(m.Acquire(ctx))(t)
		if again.Token() <= outer.Token() {
			t.Errorf("token %d after %d", again.Token(), outer.Token())
		}
		must.Do(t, again.Release(ctx))
		rig.NoWatches(t, zs)
	})
}

// A holder should learn that it has lost the lock before another client can get it.
func TestLeaseEndsBeforeTheSession(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, cut := severed(t, zs)
		other, _ := on(t, zs)
		held := must.Get(lock.NewMutex(conn, "/l").Acquire(ctx))(t)
		resume := cut()
		second := must.Get(lock.NewMutex(other, "/l").Acquire(ctx))(t)
		if !rig.Closed(held.Done()) || !errors.Is(held.Err(), lock.ErrLost) {
			t.Errorf("another client holds the lock, and the first got %v", held.Err())
		}
		if second.Token() <= held.Token() {
			t.Errorf("token %d after %d", second.Token(), held.Token())
		}
		resume()
		if err := held.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release of a lost lock: %v", err)
		}
		must.Do(t, second.Release(ctx))
	})
}

func TestGuardedWrite(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		zs.Set("/data", "0")
		l := must.Get(lock.NewMutex(conn, "/l").Acquire(ctx))(t)
		must.Do(t, l.Set(ctx, "/data", []byte("1"), client.AnyVersion))
		if err := l.Set(ctx, "/none", nil, client.AnyVersion); !errors.Is(err, client.ErrNoNode) || errors.Is(err, lock.ErrLost) {
			t.Errorf("write to a missing znode: %v", err)
		}
		zs.Delete(l.Path()) // an administrator interferes
		synctest.Wait()
		if err := l.Set(ctx, "/data", []byte("2"), client.AnyVersion); !errors.Is(err, lock.ErrLost) {
			t.Errorf("write without the lock: %v", err)
		}
		if zs.Get("/data") != "1" {
			t.Errorf("data %q", zs.Get("/data"))
		}
		if !rig.Closed(l.Done()) {
			t.Error("the holder did not learn that its znode is gone")
		}
		if err := l.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v", err)
		}
		rig.NoWatches(t, zs)
	})
}

func TestRevoke(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		m := lock.NewMutex(conn, "/l", lock.WithData([]byte("a")))
		l := must.Get(m.Acquire(ctx))(t)
		list := must.Get(lock.NewMutex(other, "/l").Participants(ctx))(t)
		if len(list) != 1 || string(list[0].Data) != "a" || list[0].Token != l.Token() || list[0].Path != l.Path() {
			t.Fatalf("participants: %+v", list)
		}
		must.Do(t, lock.Revoke(ctx, other, list[0].Path))
		<-l.RevokeRequested()
		if l.Err() != nil {
			t.Errorf("it is lost instead of revoked: %v", l.Err())
		}
		must.Do(t, lock.Revoke(ctx, other, list[0].Path)) // again
		synctest.Wait()
		must.Do(t, l.Release(ctx))
		rig.NoWatches(t, zs)
	})
}

// If a holder replaces its data, it should learn of a Revoke that it overwrites, whether
// the Revoke comes before SetData has read the znode or after.
func TestSetDataKeepsARevoke(t *testing.T) {
	type acquire = func(context.Context) (*lock.Lease, error)
	for name, locker := range map[string]func(recipes.Conn) acquire{
		"mutex": func(c recipes.Conn) acquire { return lock.NewMutex(c, "/l").Acquire },
		"lease": func(c recipes.Conn) acquire { return lock.NewLeaseLock(c, "/l").Acquire },
	} {
		for _, held := range []proto.Op{proto.OpGetData, proto.OpMulti} {
			t.Run(name+" "+held.String(), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, zs *zktest.Server) {
					ctx := rig.Within(t)
					conn, c := on(t, zs)
					other, _ := on(t, zs)
					l := must.Get(locker(conn)(ctx))(t)
					written := make(chan error, 1)
					late := zs.DelayNext(zktest.Match{Op: held, Session: c.Session().ID}, time.Second)
					go func() { written <- l.SetData(ctx, []byte("new")) }()
					late.Wait()
					must.Do(t, lock.Revoke(ctx, other, l.Path()))
					must.Do(t, <-written)
					synctest.Wait()
					if !rig.Closed(l.RevokeRequested()) || zs.Get(l.Path()) != "new" {
						t.Errorf("the holder doesn't know about the revoke, or its data is %q", zs.Get(l.Path()))
					}
					must.Do(t, l.Release(ctx))
					if err := l.SetData(ctx, nil); !errors.Is(err, lock.ErrReleased) {
						t.Errorf("after the release: %v", err)
					}
				})
			})
		}
	}
}

func TestWaiterQueuesAgainAfterItsZnodeVanished(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewMutex(conn, "/l").Acquire(ctx))(t)
		got := make(chan *lock.Lease)
		go func() {
			l, err := lock.NewMutex(other, "/l").Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- l
		}()
		synctest.Wait()
		for _, name := range rig.Children(zs, "/l") {
			if "/l/"+name != l.Path() {
				zs.Delete("/l/" + name)
			}
		}
		must.Do(t, l.Release(ctx))
		second := <-got
		if second.Err() != nil || len(rig.Children(zs, "/l")) != 1 {
			t.Errorf("%v, %v", second.Err(), rig.Children(zs, "/l"))
		}
		must.Do(t, second.Release(ctx))
	})
}

func TestClosedClient(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, c := on(t, zs)
		m := lock.NewMutex(conn, "/l")
		l := must.Get(m.Acquire(ctx))(t)
		waiting := make(chan error)
		go func() { _, err := m.Acquire(ctx); waiting <- err }()
		synctest.Wait()
		must.Do(t, c.Close())
		if err := <-waiting; !errors.Is(err, client.ErrClosed) {
			t.Errorf("waiting: %v", err)
		}
		<-l.Done()
		if err := l.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("holding: %v", err)
		}
		if _, err := m.Acquire(ctx); !errors.Is(err, client.ErrClosed) {
			t.Errorf("later: %v", err)
		}
	})
}

// Whichever step fails, and in whatever way, the lock should be either held or free for
// other clients, and nothing should be left over.
func TestMutexAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		m := lock.NewMutex(e.Conn, "/l")
		l, err := m.Acquire(e.Ctx)
		if err != nil && !e.Canceled() {
			e.Errorf("acquire: %v", err)
		}
		if err == nil && l.Err() == nil {
			if n := len(rig.Children(e.Server, "/l")); n != 1 {
				e.Errorf("%d znodes while the lock is held", n)
			}
		}
		if err == nil {
			_ = l.Release(e.Ctx)
		}
		free(e, "/l")
	})
}

// The faults hit a waiter while another client holds the lock.
func TestWaiterAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		holder, err := lock.NewMutex(otherConn(e), "/l").Acquire(e.Bounded())
		if err != nil {
			e.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			_ = holder.Release(e.Bounded())
		}()
		l, err := lock.NewMutex(e.Conn, "/l").Acquire(e.Ctx)
		switch {
		case err == nil && !errors.Is(holder.Err(), lock.ErrReleased):
			e.Error("two clients hold the lock")
		case err == nil:
			_ = l.Release(e.Ctx)
		case !e.Canceled():
			e.Errorf("acquire: %v", err)
		}
		<-holder.Done()
		free(e, "/l")
	})
}
