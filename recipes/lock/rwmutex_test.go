package lock_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestReadersShareWritersDoNot(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		var mu sync.Mutex
		var log []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, what)
		}
		begin := func(name string, acquire func(context.Context) (*lock.Lease, error), hold time.Duration) {
			go func() {
				l, err := acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				note(name)
				time.Sleep(hold)
				note(strings.ToUpper(name))
				if err := l.Release(ctx); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		for _, who := range []struct {
			name  string
			write bool
			hold  time.Duration
		}{{"a", false, 10}, {"b", false, 20}, {"w", true, 10}, {"c", false, 10}, {"d", false, 15}, {"x", true, 10}} {
			conn, _ := on(t, zs)
			m := lock.NewRWMutex(conn, "/rw")
			acquire := m.Read
			if who.write {
				acquire = m.Write
			}
			begin(who.name, acquire, who.hold*time.Second)
		}
		time.Sleep(10 * time.Minute)
		mu.Lock()
		got := strings.Join(log, "")
		mu.Unlock()
		// One release admits c and d, in either order.
		if !slices.Contains([]string{"abABwWcdCDxX", "abABwWdcCDxX"}, got) {
			t.Errorf("order %s", got)
		}
		rig.NoWatches(t, zs)
	})
}

// The release of a writer should admit all readers up to the next writer, and wake no other
// client.
func TestOneReleaseAdmitsAllReaders(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		w := must.Get(lock.NewRWMutex(conn, "/rw").Write(ctx))(t)
		var in atomic.Int32
		stop, cancel := context.WithCancel(ctx)
		for i := range 20 {
			conn, _ := on(t, zs)
			m := lock.NewRWMutex(conn, "/rw")
			acquire := m.Read
			if i == 10 {
				acquire = m.Write
			}
			go func() {
				if l, err := acquire(stop); err == nil {
					in.Add(1)
					<-stop.Done()
					_ = l.Release(ctx)
				}
			}()
			synctest.Wait()
		}
		zs.ForgetRequests()
		must.Do(t, w.Release(ctx))
		synctest.Wait()
		if n := in.Load(); n != 10 {
			t.Errorf("%d readers hold the lock", n)
		}
		if n := zs.Requests(zktest.Match{Op: proto.OpGetChildren}); n != 10 {
			t.Errorf("%d were woken", n)
		}
		cancel()
		time.Sleep(time.Second)
		rig.NoWatches(t, zs)
	})
}

func TestOwnersOfReadWriteLocks(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		conn, _ := on(t, zs)
		m := lock.NewRWMutex(conn, "/rw")
		ctx := lock.WithOwner(rig.Within(t))
		r := must.Get(m.Read(ctx))(t)
		if _, err := m.Write(ctx); !errors.Is(err, lock.ErrUpgrade) {
			t.Errorf("upgrade: %v", err)
		}
		must.Do(t, r.Release(ctx))
		w := must.Get(m.Write(ctx))(t)
		w2 := must.Get(m.Write(ctx))(t)
		r = must.Get(m.Read(ctx))(t)
		w3 := must.Get(m.Write(ctx))(t) // still the writer
		must.Do(t, w2.Release(ctx))
		must.Do(t, w3.Release(ctx))
		if _, err := m.TryRead(rig.Within(t)); !errors.Is(err, lock.ErrNotAcquired) {
			t.Errorf("another reads while there is a writer: %v", err)
		}
		must.Do(t, w.Release(ctx))
		other := must.Get(m.TryRead(rig.Within(t)))(t)
		must.Do(t, other.Release(ctx))
		must.Do(t, r.Release(ctx))
		rig.NoWatches(t, zs)
	})
}

func TestDowngrade(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn, _ := on(t, zs)
		m := lock.NewRWMutex(conn, "/rw")
		w := must.Get(m.Write(ctx))(t)
		writer := make(chan *lock.Lease)
		go func() {
			l, err := m.Write(ctx)
			if err != nil {
				t.Error(err)
			}
			writer <- l
		}()
		synctest.Wait()
		r := must.Get(m.Downgrade(ctx, w))(t)
		if !errors.Is(w.Err(), lock.ErrReleased) {
			t.Errorf("the write lock: %v", w.Err())
		}
		synctest.Wait()
		select {
		case <-writer:
			t.Fatal("a writer holds the lock beside the reader")
		default:
		}
		must.Do(t, r.Release(ctx))
		next := <-writer
		must.Do(t, next.Release(ctx))
		rig.NoWatches(t, zs)
	})
}

func TestReadWriteAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		other := lock.NewRWMutex(otherConn(e), "/l")
		holder, err := other.Write(e.Bounded())
		if err != nil {
			e.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			_ = holder.Release(e.Bounded())
		}()
		l, err := lock.NewRWMutex(e.Conn, "/l").Read(e.Ctx)
		switch {
		case err == nil && !errors.Is(holder.Err(), lock.ErrReleased):
			e.Error("read beside a writer")
		case err == nil:
			_ = l.Release(e.Ctx)
		case !e.Canceled():
			e.Errorf("read: %v", err)
		}
		w, err := other.Write(e.Bounded())
		if err != nil {
			e.Fatalf("no client can write afterwards: %v", err)
		}
		_ = w.Release(e.Bounded())
		free(e, "/l")
	})
}

// Whatever fails while a writer becomes a reader, no other writer should get the lock in
// between. If the downgrade fails, the client should still hold the write lock, or nothing.
func TestDowngradeAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		m, other := lock.NewRWMutex(e.Conn, "/l"), lock.NewRWMutex(otherConn(e), "/l")
		w, err := m.Write(e.Ctx)
		if err != nil {
			if !e.Canceled() {
				e.Errorf("write: %v", err)
			}
			free(e, "/l")
			return
		}
		next := asynchronously(e.Bounded(), other.Write)
		synctest.Wait()
		r, err := m.Downgrade(e.Ctx, w)
		synctest.Wait()
		switch {
		case err == nil:
			if r.Err() == nil && len(next) > 0 && e.Fault != steps.Expiry { // the client has not been notified yet
				e.Error("a writer got the lock in between")
			}
			_ = r.Release(e.Ctx)
		case e.Fault == steps.LostRequest || e.Fault == steps.LostReply || e.Fault == steps.LostBehind:
			e.Errorf("downgrade: %v", err)
		default:
			if w.Err() == nil && len(next) > 0 {
				e.Error("a second writer after a failed downgrade")
			}
			_ = w.Release(e.Ctx)
		}
		o := <-next
		if o.err != nil {
			e.Fatalf("no client can write afterwards: %v", o.err)
		}
		_ = o.l.Release(e.Bounded())
		free(e, "/l")
	})
}
