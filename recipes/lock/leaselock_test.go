package lock_test

import (
	"context"
	"errors"
	"strings"
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

func TestLeaseIsRenewedWhileItsHolderLives(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, c := on(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewLeaseLock(conn, "/l", lock.WithOptions(lock.WithData([]byte("me")))).Acquire(ctx))(t)
		time.Sleep(10 * time.Minute)
		if l.Err() != nil {
			t.Fatalf("after ten minutes: %v", l.Err())
		}
		_, err := lock.NewLeaseLock(other, "/l").TryAcquire(ctx)
		var held *lock.HeldError
		if !errors.As(err, &held) || !errors.Is(err, lock.ErrNotAcquired) {
			t.Fatalf("another: %v", err)
		}
		if held.Left <= 0 || held.Left > lock.DefaultLease || string(held.Data) != "me" {
			t.Errorf("%v left, data %q", held.Left, held.Data)
		}
		// The lock should not depend on the session.
		zs.ExpireSession(c.Session().ID)
		time.Sleep(10 * time.Minute)
		if l.Err() != nil {
			t.Errorf("after the session's end: %v", l.Err())
		}
		must.Do(t, l.Release(ctx))
		next := must.Get(lock.NewLeaseLock(other, "/l").Acquire(ctx))(t)
		if next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
		must.Do(t, next.Release(ctx))
		rig.NoWatches(t, zs)
	})
}

func TestExplicitLeaseIsNotRenewed(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewLeaseLock(conn, "/l", lock.WithLease(10*time.Second)).Acquire(ctx))(t)
		began := time.Now()
		next := must.Get(lock.NewLeaseLock(other, "/l").Acquire(ctx))(t)
		if waited := time.Since(began); waited < 10*time.Second || waited > 11*time.Second {
			t.Errorf("the lease of 10 s was waited for %v", waited)
		}
		if !rig.Closed(l.Done()) || !errors.Is(l.Err(), lock.ErrLost) {
			t.Errorf("another client holds it, and the first got %v", l.Err())
		}
		if err := l.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release of another client's lock: %v", err)
		}
		if err := l.Set(ctx, "/data", nil, client.AnyVersion); !errors.Is(err, lock.ErrLost) {
			t.Errorf("write: %v", err)
		}
		if next.Err() != nil {
			t.Errorf("the second holder: %v", next.Err())
		}
		must.Do(t, next.Release(ctx))
	})
}

// If a holder can't reach a server, it should lose the lock before another client can get
// it.
func TestSeveredHolderLearnsFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, cut := severed(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewLeaseLock(conn, "/l").Acquire(ctx))(t)
		got := make(chan *lock.Lease)
		go func() {
			next, err := lock.NewLeaseLock(other, "/l").Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			if l.Err() == nil {
				t.Error("two clients hold the lock")
			}
			got <- next
		}()
		time.Sleep(95 * time.Second)
		resume := cut()
		<-l.Done()
		select {
		case <-got:
			t.Error("another was faster")
		default:
		}
		next := <-got
		resume()
		time.Sleep(2 * time.Minute)
		if next.Err() != nil {
			t.Errorf("the old holder reconnected and got the lock: %v", next.Err())
		}
		if err := l.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v", err)
		}
		if next.Err() != nil || len(rig.Children(zs, "/l/holder")) != 1 {
			t.Errorf("the old holder released another client's lock: %v", next.Err())
		}
		must.Do(t, next.Release(ctx))
	})
}

func TestLeaseLockIsReentrant(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := lock.WithOwner(rig.Within(t))
		conn, _ := on(t, zs)
		m := lock.NewLeaseLock(conn, "/l")
		a, b := must.Get(m.Acquire(ctx))(t), must.Get(m.Acquire(ctx))(t)
		must.Do(t, a.Release(ctx))
		if b.Err() != nil {
			t.Error(b.Err())
		}
		zs.Set("/data", "0")
		must.Do(t, b.Set(ctx, "/data", []byte("1"), client.AnyVersion))
		must.Do(t, b.Release(ctx))
		synctest.Wait()
		if n := rig.Children(zs, "/l/holder"); len(n) != 0 {
			t.Errorf("left: %v", n)
		}
	})
}

func TestLeaseLockAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		other := lock.NewLeaseLock(otherConn(e), "/l")
		holder, err := other.Acquire(e.Bounded())
		if err != nil {
			e.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			_ = holder.Release(e.Bounded())
		}()
		began := time.Now()
		l, err := lock.NewLeaseLock(e.Conn, "/l").Acquire(e.Ctx)
		if d := time.Since(began); d >= lock.DefaultLease {
			e.Errorf("acquired after %v: it has waited for itself", d)
		}
		switch {
		case err == nil && !errors.Is(holder.Err(), lock.ErrReleased):
			e.Error("two clients hold the lock")
		case err == nil:
			_ = l.Release(e.Ctx)
		case !e.Canceled():
			e.Errorf("acquire: %v", err)
		}
		next, err := other.Acquire(e.Bounded())
		if err != nil {
			e.Fatalf("no client can get the lock afterwards: %v", err)
		}
		_ = next.Release(e.Bounded())
		free(e, "/l/waiters")
		if left := rig.Children(e.Server, "/l/holder"); len(left) != 0 {
			e.Errorf("left behind: %v", left)
		}
	})
}

// stale is a connection to a server that has received no update since we first read the
// holder, until a client asks it to sync.
type stale struct {
	recipes.Conn
	seen *atomic.Pointer[client.Stat]
}

func (c stale) Session(ctx context.Context) (recipes.Session, error) {
	s, err := c.Conn.Session(ctx)
	return staleSession{s, c.seen}, err
}

type staleSession struct {
	recipes.Session
	seen *atomic.Pointer[client.Stat]
}

func (s staleSession) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	data, stat, w, err := s.Session.GetW(ctx, path)
	if err != nil || !strings.Contains(path, "/holder/") {
		return data, stat, w, err
	}
	if s.seen.CompareAndSwap(nil, &stat) {
		w.Remove(ctx)
		return data, stat, silent{}, nil
	}
	w.Remove(ctx)
	return data, *s.seen.Load(), silent{}, nil
}

func (s staleSession) Sync(ctx context.Context, path string) error {
	s.seen.Store(nil)
	return s.Session.Sync(ctx, path)
}

// silent is a watch that never fires.
type silent struct{ recipes.Watch }

func (silent) Events() <-chan client.Event { return nil }
func (silent) Remove(context.Context)      {}

// If a waiter has seen no renewal but the holder has renewed the lock, the waiter should not
// acquire it: the leader knows more than the waiter's server.
func TestWaiterOnALaggingServer(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		l := must.Get(lock.NewLeaseLock(conn, "/l").Acquire(ctx))(t)
		got := asynchronously(ctx, lock.NewLeaseLock(stale{other, new(atomic.Pointer[client.Stat])}, "/l").Acquire)
		time.Sleep(5 * time.Minute)
		select {
		case o := <-got:
			t.Fatalf("two clients hold the lock: %v, %v", l.Err(), o.err)
		default:
		}
		if l.Err() != nil || !zs.Exists(l.Path()) {
			t.Fatalf("the holder: %v", l.Err())
		}
		must.Do(t, l.Release(ctx))
		must.Do(t, next(t, got).Release(ctx))
	})
}

// A lease should count from before the request was sent, however long the reply takes.
func TestLeaseCountsFromSending(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, c := on(t, zs)
		slow := func(op proto.Op, path string) {
			zs.DelayNext(zktest.Match{Op: op, Path: path, Session: c.Session().ID}, 5*time.Second)
		}
		const valid = lock.DefaultLease - lock.DefaultLease/20
		slow(proto.OpMulti, "/l/holder/*")
		began := time.Now()
		l := must.Get(lock.NewLeaseLock(conn, "/l").Acquire(ctx))(t)
		if d := time.Since(began); d < 5*time.Second || !l.Deadline().Equal(began.Add(valid)) {
			t.Errorf("acquired in %v, valid for %v", d, l.Deadline().Sub(began))
		}
		slow(proto.OpSetData, "/l/holder/*")
		time.Sleep(lock.DefaultLease/3 + 6*time.Second)
		sent := began.Add(5*time.Second + lock.DefaultLease/3)
		if !l.Deadline().Equal(sent.Add(valid)) {
			t.Errorf("valid for %v after the renewal was sent", l.Deadline().Sub(sent))
		}
		must.Do(t, l.Release(ctx))
	})
}

// A lease should not be granted if it has run out when the reply arrives.
func TestReplyAfterTheEndOfTheLease(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, c := on(t, zs)
		zs.DelayNext(zktest.Match{Op: proto.OpMulti, Path: "/l/holder/*", Session: c.Session().ID}, 5*time.Second)
		l := must.Get(lock.NewLeaseLock(conn, "/l", lock.WithLease(4*time.Second)).Acquire(ctx))(t)
		if l.Err() != nil || time.Until(l.Deadline()) < 3*time.Second {
			t.Errorf("%v, valid for %v", l.Err(), time.Until(l.Deadline()))
		}
		must.Do(t, l.Release(ctx))
		if left := rig.Children(zs, "/l/holder"); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// Versions wrap, and a condition on version -1 is always true, so a waiter should not delete
// a holder's znode on that condition.
func TestLeaseLockAtVersionMinusOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, c := on(t, zs)
		other, _ := on(t, zs)
		conn, other = rig.ShiftVersions(conn, -1), rig.ShiftVersions(other, -1)
		for name, waiter := range map[string]recipes.Conn{
			"up to date": other,
			"behind":     stale{other, new(atomic.Pointer[client.Stat])},
		} {
			zs.DelayNext(zktest.Match{Op: proto.OpSetData, Path: "/l/holder/*", Session: c.Session().ID}, 5*time.Second)
			l := must.Get(lock.NewLeaseLock(conn, "/l").Acquire(ctx))(t)
			got := asynchronously(ctx, lock.NewLeaseLock(waiter, "/l").Acquire)
			for range 20 {
				time.Sleep(15 * time.Second)
				select {
				case o := <-got:
					t.Fatalf("%s: two clients hold the lock: %v, %v", name, l.Err(), o.err)
				default:
				}
				if l.Err() != nil || !zs.Exists(l.Path()) {
					t.Fatalf("%s: the holder: %v", name, l.Err())
				}
			}
			must.Do(t, l.Release(ctx))
			must.Do(t, next(t, got).Release(ctx))
		}
		rig.NoWatches(t, zs)
	})
}

// A lease should run out even if its znode stays at version -1: a waiter moves the znode to
// another version, waits for one more lease and deletes it.
func TestLeaseRunsOutAtVersionMinusOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		other, _ := on(t, zs)
		conn, other = rig.ShiftVersions(conn, -1), rig.ShiftVersions(other, -1)
		l := must.Get(lock.NewLeaseLock(conn, "/l", lock.WithLease(10*time.Second)).Acquire(ctx))(t)
		began := time.Now()
		next := must.Get(lock.NewLeaseLock(other, "/l").Acquire(ctx))(t)
		if d := time.Since(began); d < 20*time.Second || d > 21*time.Second {
			t.Errorf("the lease of 10 s was waited for %v", d)
		}
		if !errors.Is(l.Err(), lock.ErrLost) {
			t.Errorf("two clients hold the lock: %v", l.Err())
		}
		must.Do(t, next.Release(ctx))
	})
}

// A renewal should not overwrite a Revoke that the holder hasn't seen.
func TestRenewalKeepsARevoke(t *testing.T) {
	for name, tc := range map[string]struct {
		shift   int32
		revoked time.Duration // after the Acquire began
	}{
		"version -1":         {-2, 15 * time.Second}, // at version -1 since the first renewal
		"before it was read": {0, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				ctx := rig.Within(t)
				conn, c := on(t, zs)
				other, _ := on(t, zs)
				read := zktest.Match{Op: proto.OpGetData, Path: "/l/holder/*", Session: c.Session().ID}
				zs.DelayNext(read, 2*time.Second)
				got := asynchronously(ctx, lock.NewLeaseLock(rig.ShiftVersions(conn, tc.shift), "/l").Acquire)
				time.Sleep(tc.revoked)
				must.Do(t, lock.Revoke(ctx, other, "/l/holder/"+zs.Children("/l/holder")[0]))
				l := next(t, got)
				time.Sleep(lock.DefaultLease)
				if !rig.Closed(l.RevokeRequested()) {
					t.Error("the holder doesn't know about the revoke")
				}
				must.Do(t, l.Err())
				must.Do(t, l.Release(ctx))
			})
		})
	}
}
