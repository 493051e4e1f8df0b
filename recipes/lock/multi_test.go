package lock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func TestMultiIsAllOrNothing(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		a, b := lock.NewMutex(conn, "/a"), lock.NewRWMutex(conn, "/b")
		both := lock.NewMulti(a, b.Writer())
		taken := must.Get(b.Read(ctx))(t)
		if _, err := both.TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("while one is held: %v", err)
		}
		if n := rig.Children(zs, "/a"); len(n) != 0 {
			t.Errorf("the other is held: %v", n)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := both.Acquire(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a time-out: %v", err)
		}
		must.Do(t, taken.Release(ctx))
		bundle := must.Get(both.Acquire(ctx))(t)
		if bundle.Err() != nil || len(bundle.Parts()) != 2 || bundle.Deadline().IsZero() {
			t.Errorf("%v, %v", bundle.Err(), bundle.Deadline())
		}
		zs.Delete("/b/" + rig.Children(zs, "/b")[0])
		<-bundle.Done()
		if !errors.Is(bundle.Err(), lock.ErrLost) {
			t.Errorf("one part is lost: %v", bundle.Err())
		}
		if err := bundle.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v", err)
		}
		rig.NoWatches(t, zs)
		if n := rig.Children(zs, "/a"); len(n) != 0 {
			t.Errorf("left: %v", n)
		}
	})
}

func TestQuorum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := rig.Within(t)
		var servers []*zktest.Server
		members := make([][]lock.Locker, 2)
		for range 5 {
			zs := zktest.Run(t)
			servers = append(servers, zs)
			for i := range members {
				conn, _ := on(t, zs)
				members[i] = append(members[i], lock.NewMutex(conn, "/q"))
			}
		}
		a := lock.NewQuorum(time.Second, 50*time.Millisecond, members[0]...)
		b := lock.NewQuorum(time.Second, 50*time.Millisecond, members[1]...)
		held := must.Get(a.Acquire(ctx))(t)
		if left := time.Until(held.Deadline()); left <= 0 {
			t.Errorf("%v left", left)
		}
		if _, err := b.TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("a second holder: %v", err)
		}
		for _, zs := range servers {
			if n := rig.Children(zs, "/q"); len(n) != 1 {
				t.Errorf("a failed try left %v", n)
			}
		}
		// A minority may fail.
		for _, zs := range servers[:2] {
			for _, s := range zs.Sessions() {
				zs.ExpireSession(s.ID)
			}
		}
		synctest.Wait()
		if held.Err() != nil {
			t.Errorf("without two of five: %v", held.Err())
		}
		for _, s := range servers[2].Sessions() {
			servers[2].ExpireSession(s.ID)
		}
		<-held.Done()
		if !errors.Is(held.Err(), lock.ErrLost) {
			t.Errorf("without three of five: %v", held.Err())
		}
		_ = held.Release(ctx)
		next := must.Get(b.Acquire(ctx))(t)
		must.Do(t, next.Release(ctx))
		for _, zs := range servers {
			rig.NoWatches(t, zs)
		}
	})
}

// Members that don't reply should count as members that refuse.
func TestQuorumWithSilentMembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := rig.Within(t)
		var members []lock.Locker
		var resume []func()
		for i := range 5 {
			zs := zktest.Run(t)
			conn, cut := severed(t, zs)
			members = append(members, lock.NewMutex(conn, "/q"))
			if i < 2 {
				resume = append(resume, cut())
			}
		}
		began := time.Now()
		held := must.Get(lock.NewQuorum(time.Second, time.Millisecond, members...).Acquire(ctx))(t)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		must.Do(t, held.Release(ctx))
		for _, r := range resume {
			r()
		}
		time.Sleep(time.Minute)
	})
}

// A client that gets only a minority should hold no lock.
func TestQuorumReleasesAMinority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := rig.Within(t)
		var servers []*zktest.Server
		var members []lock.Locker
		for i := range 5 {
			zs := zktest.Run(t)
			servers = append(servers, zs)
			conn, _ := on(t, zs)
			members = append(members, lock.NewMutex(conn, "/q"))
			if i < 3 {
				must.Get(lock.NewMutex(conn, "/q").Acquire(ctx))(t)
			}
		}
		if _, err := lock.NewQuorum(time.Second, time.Millisecond, members...).TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("two of five: %v", err)
		}
		for i, zs := range servers {
			if n := rig.Children(zs, "/q"); len(n) != map[bool]int{true: 1}[i < 3] {
				t.Errorf("server %d: %v", i, n)
			}
		}
	})
}

// A quorum should be valid as long as a majority of its parts is valid. The parts are valid
// for different times.
func TestValidityOfAQuorum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := rig.Within(t)
		var members []lock.Locker
		began := time.Now()
		for _, lease := range []time.Duration{10, 50, 20, 40, 30} {
			conn, _ := on(t, zktest.Run(t))
			members = append(members, lock.NewLeaseLock(conn, "/q", lock.WithLease(lease*time.Second)))
		}
		b := must.Get(lock.NewQuorum(time.Second, time.Millisecond, members...).Acquire(ctx))(t)
		// The third longest lease, minus a twentieth.
		if valid := b.Deadline().Sub(began).Round(time.Second); valid != 29*time.Second {
			t.Errorf("valid for %v", valid)
		}
		deadline := b.Deadline()
		<-b.Done()
		if now := time.Now(); now.Before(deadline) || now.Sub(deadline) > time.Second {
			t.Errorf("ended %v after its deadline", now.Sub(deadline))
		}
		if err := b.Release(ctx); !errors.Is(err, lock.ErrLost) {
			t.Errorf("release: %v", err)
		}
	})
}
