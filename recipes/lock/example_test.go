package lock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func Example() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()

	m := lock.NewMutex(recipes.On(c), "/locks/stock")
	lease, err := m.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = lease.Release(ctx) }()

	work, cancel := lease.Context(ctx) // ends when the lock may be lost
	defer cancel()
	fmt.Println("working:", work.Err() == nil, lease.Err() == nil)
	// Output: working: true true
}

// Ten customers want the last three pieces. Each reads the stock, waits a little, and buys
// one. Without a lock, all of them see stock; with the lock, we serve three.
func ExampleMutex_oversell() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()

	sell := func(guard func(buy func())) (sold int) {
		var mu sync.Mutex // only avoids a data race: it does not make the sale atomic
		stock := 3
		look := func() int { mu.Lock(); defer mu.Unlock(); return stock }
		take := func() { mu.Lock(); defer mu.Unlock(); stock--; sold++ }

		var looked, done sync.WaitGroup
		looked.Add(10)
		for range 10 {
			done.Go(func() {
				once := sync.OnceFunc(looked.Done)
				if guard == nil {
					seen := look()
					once()
					looked.Wait() // the worst case: all customers read the stock before any buys
					if seen > 0 {
						take()
					}
					return
				}
				guard(func() {
					if look() > 0 {
						take()
					}
				})
			})
		}
		done.Wait()
		return sold
	}

	fmt.Println("without the lock:", sell(nil), "of 3 sold")
	m := lock.NewMutex(recipes.On(c), "/locks/stock")
	fmt.Println("with the lock:", sell(func(buy func()) {
		lease, err := m.Acquire(ctx)
		if err != nil {
			return // we don't buy anything without the lock
		}
		defer func() { _ = lease.Release(ctx) }()
		buy()
	}), "of 3 sold")
	// Output:
	// without the lock: 10 of 3 sold
	// with the lock: 3 of 3 sold
}

func ExampleMutex_TryAcquire() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	m := lock.NewMutex(recipes.On(c), "/locks/report")

	first, err := m.TryAcquire(ctx)
	fmt.Println("first:", err)
	_, err = m.TryAcquire(ctx)
	fmt.Println("second:", errors.Is(err, lock.ErrNotAcquired))

	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err = m.Acquire(short)
	fmt.Println("with a time-out:", errors.Is(err, context.DeadlineExceeded))
	fmt.Println("release:", first.Release(ctx))
	// Output:
	// first: <nil>
	// second: true
	// with a time-out: true
	// release: <nil>
}

func ExampleOwner() {
	c, stop := rig.Embedded()
	defer stop()
	m := lock.NewMutex(recipes.On(c), "/locks/tree")

	ctx := lock.WithOwner(context.Background()) // all users of this context are one owner
	outer, err := m.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	inner, err := m.Acquire(ctx) // immediately
	fmt.Println("again:", err)
	_ = outer.Release(ctx)
	fmt.Println("still held:", inner.Err() == nil)
	_ = inner.Release(ctx)
	fmt.Println("after the last release:", errors.Is(inner.Err(), lock.ErrReleased))
	// Output:
	// again: <nil>
	// still held: true
	// after the last release: true
}

func ExampleRWMutex() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	m := lock.NewRWMutex(recipes.On(c), "/locks/catalogue")

	a, _ := m.Read(ctx)
	b, err := m.Read(ctx)
	fmt.Println("two read:", err)
	_, err = m.TryWrite(ctx)
	fmt.Println("and nobody writes:", errors.Is(err, lock.ErrNotAcquired))
	_, _ = a.Release(ctx), b.Release(ctx)

	w, _ := m.Write(ctx)
	r, err := m.Downgrade(ctx, w) // no writer gets the lock in between
	fmt.Println("reads what it wrote:", err)
	_ = r.Release(ctx)
	// Output:
	// two read: <nil>
	// and nobody writes: true
	// reads what it wrote: <nil>
}

func ExampleSemaphore() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	s := lock.NewSemaphore(recipes.On(c), "/limits/mailer", 2)

	both, err := s.AcquireN(ctx, 2) // all or none
	fmt.Println(len(both), err)
	_, err = s.TryAcquire(ctx)
	fmt.Println("a third:", errors.Is(err, lock.ErrNotAcquired))
	for _, l := range both {
		_ = l.Release(ctx)
	}
	// Output:
	// 2 <nil>
	// a third: true
}

func ExampleSemaphoreMutex() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := lock.WithOwner(context.Background())
	m := lock.NewSemaphoreMutex(recipes.On(c), "/locks/once")

	l, _ := m.Acquire(ctx)
	_, err := m.TryAcquire(ctx) // even for the same owner
	fmt.Println("again:", errors.Is(err, lock.ErrNotAcquired))
	_ = l.Release(ctx)
	// Output: again: true
}

func ExampleMulti() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	conn := recipes.On(c)

	// All clients should list the locks in the same order.
	both := lock.NewMulti(lock.NewMutex(conn, "/accounts/1"), lock.NewRWMutex(conn, "/accounts/2").Writer())
	b, err := both.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("parts:", len(b.Parts()), "held:", b.Err() == nil)
	fmt.Println("release:", b.Release(ctx))
	// Output:
	// parts: 2 held: true
	// release: <nil>
}

func ExampleQuorum() {
	ctx := context.Background()
	var members []lock.Locker
	for range 3 { // three ensembles that fail independently
		c, stop := rig.Embedded()
		defer stop()
		members = append(members, lock.NewMutex(recipes.On(c), "/locks/region"))
	}
	q := lock.NewQuorum(time.Minute, 100*time.Millisecond, members...)
	b, err := q.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a majority is held:", b.Err() == nil)
	fmt.Println("release:", b.Release(ctx))
	// Output:
	// a majority is held: true
	// release: <nil>
}

func ExampleLeaseLock() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	conn := recipes.On(c)

	// We renew it every ten seconds while this process lives.
	l, err := lock.NewLeaseLock(conn, "/locks/import").Acquire(ctx)
	fmt.Println("held:", err)
	_, err = lock.NewLeaseLock(conn, "/locks/import").TryAcquire(ctx)
	var held *lock.HeldError
	if errors.As(err, &held) {
		fmt.Println("it may be held for some time yet:", held.Left <= lock.DefaultLease)
	}
	_ = l.Release(ctx)

	// We never renew it, so it ends after five minutes in any case.
	l, err = lock.NewLeaseLock(conn, "/locks/import", lock.WithLease(5*time.Minute)).Acquire(ctx)
	fmt.Println("held:", err)
	_ = l.Release(ctx)
	// Output:
	// held: <nil>
	// it may be held for some time yet: true
	// held: <nil>
}

func ExampleSimple() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	s := lock.NewSimple(recipes.On(c), "/locks/simple", lock.WithData([]byte("host-7")))
	l, err := s.Acquire(ctx)
	fmt.Println(l.Path(), err)
	_ = l.Release(ctx)
	// Output: /locks/simple <nil>
}

// The server executes the write only while we hold the lock.
func ExampleLease_Multi() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	_, _ = c.Create(ctx, "/stock", []byte("3"))
	l, err := lock.NewMutex(recipes.On(c), "/locks/stock").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	err = l.Multi(ctx,
		recipes.Op{Kind: recipes.OpSet, Path: "/stock", Data: []byte("2"), Version: 0},
		recipes.Op{Kind: recipes.OpCreate, Path: "/sale-1", Data: []byte("one piece")})
	fmt.Println("while it is held:", err)

	_ = c.Delete(ctx, l.Path(), client.AnyVersion) // another client deletes the lock's znode
	err = l.Set(ctx, "/stock", []byte("1"), 1)
	fmt.Println("afterwards:", errors.Is(err, lock.ErrLost))
	_ = l.Release(ctx)
	data, _, _ := c.Get(ctx, "/stock")
	fmt.Printf("stock: %s\n", data)
	// Output:
	// while it is held: <nil>
	// afterwards: true
	// stock: 2
}

func ExampleRevoke() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	m := lock.NewMutex(recipes.On(c), "/locks/gpu", lock.WithData([]byte("night job")))
	l, err := m.Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}

	holder, _, _ := m.Holder(ctx)
	fmt.Printf("%s, please\n", holder.Data)
	fmt.Println(lock.Revoke(ctx, recipes.On(c), holder.Path))

	<-l.RevokeRequested() // in the holder's process: the holder decides
	fmt.Println("released:", l.Release(ctx))
	// Output:
	// night job, please
	// <nil>
	// released: <nil>
}
