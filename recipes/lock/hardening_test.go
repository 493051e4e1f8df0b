package lock_test

import (
	"context"
	"errors"
	"net"
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
)

// A lock should also create the znodes of its chroot.
func TestLockInAChrootThatIsNotThere(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := must.Get(client.Connect(ctx, "zk/apps/shop", client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return zs.Dial() })))(t)
		defer c.Close()
		l := must.Get(lock.NewMutex(recipes.On(c), "/locks/a").Acquire(ctx))(t)
		if n := len(rig.Children(zs, "/apps/shop/locks/a")); n != 1 {
			t.Errorf("%d znodes", n)
		}
		must.Do(t, l.Release(ctx))
	})
}

// All Simple locks use the same znode name, so a client that has lost the lock should not
// delete another client's znode.
func TestLostSimpleLockKeepsAnothersLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		s := lock.NewSimple(conn, "/simple")
		a := must.Get(s.Acquire(ctx))(t)
		zs.Delete("/simple")
		synctest.Wait()
		b := must.Get(s.Acquire(ctx))(t) // in the same session
		if err := a.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v", err)
		}
		if b.Err() != nil || !zs.Exists("/simple") {
			t.Errorf("the second holder: %v", b.Err())
		}
		must.Do(t, b.Release(ctx))
	})
}

// If a client finds another client's znode in place of its own, it should not get the lock.
func TestSimpleLockIsNotGrantedOnAnothersZnode(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, c := on(t, zs)
		verify := zs.DelayNext(zktest.Match{Op: proto.OpGetData, Path: "/simple", Session: c.Session().ID}, time.Second)
		got := asynchronously(ctx, lock.NewSimple(conn, "/simple").Acquire)
		verify.Wait()
		zs.Delete("/simple")
		other, _ := on(t, zs)
		held := must.Get(lock.NewSimple(other, "/simple").Acquire(ctx))(t)
		time.Sleep(2 * time.Second)
		if held.Err() != nil || !zs.Exists("/simple") {
			t.Fatalf("its znode was deleted: %v", held.Err())
		}
		select {
		case <-got:
			t.Fatal("two clients hold the lock")
		default:
		}
		must.Do(t, held.Release(ctx))
		must.Do(t, next(t, got).Release(ctx))
	})
}

// A Simple lock should recognize its own znode even if the znode's data was replaced.
func TestSimpleLockWithOtherDataIsReleased(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		l := must.Get(lock.NewSimple(conn, "/simple").Acquire(ctx))(t)
		must.Do(t, l.SetData(ctx, []byte("busy")))
		zs.LoseNext(zktest.Match{Op: proto.OpDelete, Path: "/simple"})
		_ = l.Release(ctx)
		time.Sleep(5 * time.Second)
		if zs.Exists("/simple") {
			t.Error("the znode remains")
		}
	})
}

// The holder, and any client that asks for the lock, may replace the data of a lease lock's
// znode. That should not affect waiters.
func TestLeaseLockWithOtherData(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewLeaseLock(conn, "/l", lock.WithOptions(lock.WithData([]byte("a")))).Acquire(ctx))(t)
		got := asynchronously(ctx, lock.NewLeaseLock(other, "/l").Acquire)
		must.Do(t, l.SetData(ctx, []byte("b")))
		time.Sleep(time.Minute)
		list := must.Get(lock.NewLeaseLock(other, "/l").Participants(ctx))(t)
		if len(list) != 2 || string(list[0].Data) != "b" || l.Err() != nil {
			t.Fatalf("participants %v, %v", list, l.Err())
		}
		must.Do(t, lock.Revoke(ctx, other, list[0].Path))
		<-l.RevokeRequested()
		time.Sleep(time.Minute)
		if l.Err() != nil || zs.Get(l.Path()) != "b" {
			t.Errorf("after revoke: %v, %q", l.Err(), zs.Get(l.Path()))
		}
		must.Do(t, l.Release(ctx))
		must.Do(t, next(t, got).Release(ctx))
		rig.NoWatches(t, zs)
	})
}

// If a Multi loses a lock while it waits for the next one, it should acquire the lost lock
// again.
func TestMultiReacquiresALostLock(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		held := must.Get(lock.NewMutex(other, "/b").Acquire(ctx))(t)
		got := make(chan *lock.Bundle)
		go func() {
			b, err := lock.NewMulti(lock.NewMutex(conn, "/a"), lock.NewMutex(conn, "/b")).Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- b
		}()
		synctest.Wait()
		zs.Delete("/a/" + rig.Children(zs, "/a")[0])
		synctest.Wait()
		must.Do(t, held.Release(ctx))
		b := <-got
		if b.Err() != nil || len(rig.Children(zs, "/a")) != 1 || len(rig.Children(zs, "/b")) != 1 {
			t.Errorf("%v, %v, %v", b.Err(), rig.Children(zs, "/a"), rig.Children(zs, "/b"))
		}
		must.Do(t, b.Release(ctx))
		if _, err := lock.NewMulti().Acquire(ctx); err == nil {
			t.Error("a Multi of no locks is held")
		}
	})
}

func TestDowngradeOfOtherLeases(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		m := lock.NewRWMutex(conn, "/rw")
		r := must.Get(m.Read(ctx))(t)
		if _, err := m.Downgrade(ctx, r); err == nil {
			t.Error("a read lease")
		}
		must.Do(t, r.Release(ctx))
		w := must.Get(m.Write(ctx))(t)
		zs.Set("/other", "")
		if _, err := lock.NewRWMutex(conn, "/other").Downgrade(ctx, w); err == nil {
			t.Error("another's lease")
		}
		zs.Delete(w.Path())
		synctest.Wait()
		if _, err := m.Downgrade(ctx, w); !errors.Is(err, lock.ErrLost) {
			t.Errorf("a lost lease: %v", err)
		}
		_ = w.Release(ctx)
	})
}

// We may create a place beside a writer only while the writer's znode exists. The server has
// to check this, because the client may not know yet that the znode is gone.
func TestReadBesideAWriterChecksTheWriter(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := lock.WithOwner(rig.Within(t))
		conn, c := on(t, zs)
		m := lock.NewRWMutex(conn, "/rw")
		w := must.Get(m.Write(ctx))(t)
		multi := zs.DelayNext(zktest.Match{Op: proto.OpMulti, Session: c.Session().ID}, time.Second)
		got := asynchronously(ctx, m.Read)
		multi.Wait()
		zs.Delete(w.Path())
		if o := <-got; o.err == nil || !errors.Is(o.err, lock.ErrLost) {
			t.Errorf("reads beside a writer that is gone: %v", o.err)
		}
		_ = w.Release(ctx)
		if left := rig.Children(zs, "/rw"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestBadNames(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		conn, _ := on(t, zs)
		for _, name := range []string{"", "a/b"} {
			if _, err := lock.NewMutex(conn, "/l", lock.WithName(name)).Acquire(rig.Within(t)); err == nil {
				t.Errorf("name %q", name)
			}
		}
	})
}

// Whatever hangs, an Acquire should end soon after its context.
func TestAcquireEndsWithItsContext(t *testing.T) {
	type acquire = func(conn recipes.Conn) func(context.Context) (lock.Held, error)
	of := func(f func(recipes.Conn) func(context.Context) (*lock.Lease, error)) acquire {
		return func(c recipes.Conn) func(context.Context) (lock.Held, error) {
			return func(ctx context.Context) (lock.Held, error) { return f(c)(ctx) }
		}
	}
	for name, a := range map[string]acquire{
		"mutex": of(func(c recipes.Conn) func(context.Context) (*lock.Lease, error) { return lock.NewMutex(c, "/l").Acquire }),
		"semaphore": of(func(c recipes.Conn) func(context.Context) (*lock.Lease, error) {
			return lock.NewSemaphore(c, "/l", 1).Acquire
		}),
		"lease": of(func(c recipes.Conn) func(context.Context) (*lock.Lease, error) {
			return lock.NewLeaseLock(c, "/l").Acquire
		}),
		"simple": of(func(c recipes.Conn) func(context.Context) (*lock.Lease, error) {
			return lock.NewSimple(c, "/l").Acquire
		}),
		"multi": func(c recipes.Conn) func(context.Context) (lock.Held, error) {
			m := lock.NewMulti(lock.NewMutex(c, "/a"), lock.NewSimple(c, "/l"))
			return func(ctx context.Context) (lock.Held, error) { return m.Acquire(ctx) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				other, _ := on(t, zs)
				conn, cut := severed(t, zs)
				held := must.Get(a(other)(rig.Within(t)))(t)
				if name == "multi" {
					must.Do(t, held.Release(rig.Within(t)))
					held = must.Get(lock.NewSimple(other, "/l").Acquire(rig.Within(t)))(t)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				began := time.Now()
				resumes := make(chan func(), 1)
				time.AfterFunc(4*time.Second, func() { resumes <- cut() })
				_, err := a(conn)(ctx)
				if d := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || d > 7*time.Second {
					t.Errorf("after %v: %v", d, err)
				}
				must.Do(t, held.Release(rig.Within(t)))
				(<-resumes)()
				time.Sleep(time.Minute) // for the work in the background
			})
		})
	}
}

// The loss policy should decide when a lease counts as lost.
func TestLossPolicies(t *testing.T) {
	for name, c := range map[string]struct {
		policy                      recipes.LossPolicy
		afterDrop, afterLongSilence bool // lost
	}{
		"before expiry": {recipes.LostBeforeExpiry, false, true},
		"on disconnect": {recipes.LostOnDisconnect, true, true},
		"on expiry":     {recipes.LostOnExpiry, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				ctx := rig.Within(t)
				conn, cl := on(t, zs)
				m := lock.NewMutex(conn, "/l", lock.WithLossPolicy(c.policy))
				l := must.Get(m.Acquire(ctx))(t)
				zs.DropConnection(cl.Session().ID)
				time.Sleep(3 * time.Second)
				if lost := l.Err() != nil; lost != c.afterDrop || rig.Closed(l.Done()) != lost {
					t.Errorf("after a lost connection: %v", l.Err())
				}
				_ = l.Release(ctx)
				conn, cut := severed(t, zs)
				l = must.Get(lock.NewMutex(conn, "/l", lock.WithLossPolicy(c.policy)).Acquire(ctx))(t)
				resume := cut()
				time.Sleep(5 * time.Minute)
				if lost := l.Err() != nil; lost != c.afterLongSilence || rig.Closed(l.Done()) != lost {
					t.Errorf("after the session's end: %v", l.Err())
				}
				resume()
				_ = l.Release(ctx)
			})
		})
	}
}

// stopped is the connection of a process that was suspended and has just resumed: its
// holds have expired, but Done is not closed yet.
type stopped struct {
	recipes.Conn
	now *atomic.Bool
}

func (c stopped) Session(ctx context.Context) (recipes.Session, error) {
	s, err := c.Conn.Session(ctx)
	return stoppedSession{s, c.now}, err
}

type stoppedSession struct {
	recipes.Session
	now *atomic.Bool
}

func (s stoppedSession) Hold(ctx context.Context, policy recipes.LossPolicy) (recipes.Hold, error) {
	h, err := s.Session.Hold(ctx, policy)
	return stoppedHold{h, s.now}, err
}

type stoppedHold struct {
	recipes.Hold
	now *atomic.Bool
}

func (h stoppedHold) Err() error {
	if h.now.Load() {
		return client.ErrSessionExpired
	}
	return h.Hold.Err()
}

// Immediately after a pause, Err should already be correct, nothing should be written, and
// an owner should not get a lost lock again.
func TestErrChecksTheClock(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := lock.WithOwner(rig.Within(t))
		conn, _ := on(t, zs)
		zs.Set("/data", "0")
		var now atomic.Bool
		m := lock.NewMutex(stopped{conn, &now}, "/l")
		l := must.Get(m.Acquire(ctx))(t)
		now.Store(true)
		if err := l.Set(ctx, "/data", []byte("1"), client.AnyVersion); !errors.Is(err, lock.ErrLost) || zs.Get("/data") != "0" {
			t.Errorf("write: %v, %q", err, zs.Get("/data"))
		}
		if !errors.Is(l.Err(), lock.ErrLost) || !rig.Closed(l.Done()) {
			t.Errorf("the lease: %v", l.Err())
		}
		if again, err := m.Acquire(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("again: %v, %v", again, err)
		}
		if err := l.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v", err)
		}
	})
}

// Writing into a waiter's znode should not increase the waiter's token, because a later
// waiter could then get a smaller one. The waiter should learn that another client has
// asked for the lock.
func TestRevokeOfAWaiter(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		m := lock.NewMutex(conn, "/l")
		l := must.Get(m.Acquire(ctx))(t)
		second := asynchronously(ctx, m.Acquire)
		synctest.Wait()
		third := asynchronously(ctx, m.Acquire)
		synctest.Wait()
		list := must.Get(m.Participants(ctx))(t)
		must.Do(t, lock.Revoke(ctx, conn, list[1].Path))
		must.Do(t, l.Release(ctx))
		b := next(t, second)
		<-b.RevokeRequested()
		must.Do(t, b.Release(ctx))
		c := next(t, third)
		if b.Token() <= l.Token() || c.Token() <= b.Token() || b.Token() != list[1].Token {
			t.Errorf("tokens %d, %d, %d", l.Token(), b.Token(), c.Token())
		}
		must.Do(t, c.Release(ctx))
	})
}

// On a server with containers, the directories of an unused lock should disappear.
func TestIdleDirectoriesVanish(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		for _, acquire := range []func(context.Context) (*lock.Lease, error){
			lock.NewMutex(conn, "/locks/mutex").Acquire,
			lock.NewRWMutex(conn, "/locks/rw").Read,
			lock.NewSemaphore(conn, "/locks/semaphore", 2).Acquire,
			lock.NewLeaseLock(conn, "/locks/lease").Acquire,
			lock.NewSimple(conn, "/locks/simple/one").Acquire,
		} {
			l := must.Get(acquire(ctx))(t)
			time.Sleep(5 * time.Minute)
			if l.Err() != nil {
				t.Errorf("%s: %v", l.Path(), l.Err())
			}
			must.Do(t, l.Release(ctx))
		}
		time.Sleep(30 * time.Minute)
		if zs.Exists("/locks") {
			t.Errorf("left:\n%s", zs.Dump())
		}
	})
}
