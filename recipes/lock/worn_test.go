package lock_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tree"
)

// wear makes n the next number in a directory, as if that many znodes had been
// created there before. No client may be connected.
func wear(t *testing.T, zs *zktest.Server, dir string, n int32) {
	t.Helper()
	tr := zs.Server().Node().Tree()
	tr.Lock()
	defer tr.Unlock()
	zxid := tr.LastZxid()
	must.Do(t, tr.Import(zxid, 0, func(int64) bool { return false }, func(yield func(*tree.Stored, error) bool) {
		_ = yield(&tree.Stored{ACL: proto.OpenACL()}, nil) &&
			yield(&tree.Stored{Path: dir, ACL: proto.OpenACL(), Cversion: n, Czxid: 1, Mzxid: 1, Pzxid: 1}, nil)
	}))
}

const number = "2147483647"

// python-zk/kazoo 730: after 2³¹ znodes were created in a directory, numbers no longer
// grow. Servers since 3.6 give the largest number to every client, so the client that came
// last could consider itself first.
func TestNumbersRunOut(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		wear(t, zs, "/l", math.MaxInt32-3)
		const all = 12
		order := make(chan int, all)
		for i := range all {
			conn, _ := on(t, zs)
			go func() {
				l, err := lock.NewMutex(conn, "/l").Acquire(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				time.Sleep(time.Second)
				if l.Err() != nil {
					t.Error(l.Err())
				}
				_ = l.Release(ctx)
			}()
			synctest.Wait()
		}
		alike := 0
		for _, name := range rig.Children(zs, "/l") {
			if strings.HasSuffix(name, number) {
				alike++
			}
		}
		if alike != all-3 {
			t.Errorf("%d of these have the largest number: %v", alike, rig.Children(zs, "/l"))
		}
		for want := range all {
			if got := <-order; got != want {
				t.Errorf("%d holds the lock as number %d", got, want)
			}
		}
		time.Sleep(5 * time.Second)
		rig.NoWatches(t, zs)
	})
}

// A client should not get the lock beside its holder just because its name sorts before the
// holder's.
func TestNewcomersWithTheSameNumber(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		wear(t, zs, "/l", math.MaxInt32)
		conn, _ := on(t, zs)
		m := lock.NewRWMutex(conn, "/l")
		w := must.Get(m.Write(ctx))(t)
		for range 20 {
			if l, err := m.TryWrite(ctx); !errors.Is(err, lock.ErrNotAcquired) {
				t.Fatalf("two write: %v, %v", l, err)
			}
			if l, err := m.TryRead(ctx); !errors.Is(err, lock.ErrNotAcquired) {
				t.Fatalf("one reads what another writes: %v, %v", l, err)
			}
		}
		// A place with the writer's number could belong to any client.
		if _, err := m.Downgrade(ctx, w); err == nil || w.Err() != nil {
			t.Errorf("downgrade: %v, %v", err, w.Err())
		}
		must.Do(t, w.Release(ctx))
		list, err := m.Participants(ctx)
		if err != nil || len(list) != 0 {
			t.Errorf("participants: %v, %v", list, err)
		}
	})
}

func TestSemaphoreAfterTheLargestNumber(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		wear(t, zs, "/leases", math.MaxInt32)
		conn, _ := on(t, zs)
		s := lock.NewSemaphore(conn, "/", 2)
		a, b := must.Get(s.Acquire(ctx))(t), must.Get(s.Acquire(ctx))(t)
		for range 20 {
			if _, err := s.TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
				t.Fatalf("a third lease of two: %v", err)
			}
		}
		if l, err := s.Participants(ctx); err != nil || len(l) != 2 || l[0].Path != a.Path() {
			t.Errorf("participants %v, %v", fmt.Sprint(l), err)
		}
		must.Do(t, a.Release(ctx))
		must.Do(t, b.Release(ctx))
	})
}

// Servers since 3.6 assign negative numbers to creates that arrive while others are in
// flight, and after that the largest number again to a create that arrives alone.
func TestNegativeNumbers(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		wear(t, zs, "/l", math.MaxInt32-1)
		conn, _ := on(t, zs)
		other, c := on(t, zs)
		m := lock.NewMutex(conn, "/l")
		first := must.Get(m.Acquire(ctx))(t) // 2147483646
		must.Get(c.Create(ctx, "/l/_c_other-lock--2147483648", nil, client.Ephemeral))(t)
		last := asynchronously(ctx, lock.NewMutex(other, "/l").Acquire) // 2147483647
		synctest.Wait()
		list := must.Get(m.Participants(ctx))(t)
		var order []string
		for _, p := range list {
			order = append(order, p.Path[strings.LastIndex(p.Path, "lock-")+5:])
		}
		if got := strings.Join(order, " "); got != "2147483646 -2147483648 2147483647" {
			t.Errorf("order: %s", got)
		}
		must.Do(t, first.Release(ctx))
		synctest.Wait()
		select {
		case <-last:
			t.Error("two clients hold the lock: the largest number came after the negative one")
		default:
		}
		must.Do(t, c.Delete(ctx, "/l/_c_other-lock--2147483648", client.AnyVersion))
		must.Do(t, next(t, last).Release(ctx))
	})
}
