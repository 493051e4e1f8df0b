package barrier_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/barrier"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBarrier(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		b := barrier.New(recipes.On(zs.Client(t)), "/gates/a")
		must.Do(t, b.Wait(ctx)) // open
		must.Do(t, b.Close(ctx))
		must.Do(t, b.Close(ctx))
		var through atomic.Int32
		for range 5 {
			go func() {
				if err := barrier.New(recipes.On(zs.Client(t)), "/gates/a").Wait(ctx); err != nil {
					t.Error(err)
				}
				through.Add(1)
			}()
		}
		short, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if err := b.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a closed gate: %v", err)
		}
		if through.Load() != 0 {
			t.Error("a waiter passed a closed gate")
		}
		must.Do(t, b.Open(ctx))
		must.Do(t, b.Open(ctx))
		synctest.Wait()
		if through.Load() != 5 {
			t.Errorf("%d passed the open gate", through.Load())
		}
		rig.NoWatches(t, zs)
	})
}

func TestCountDownLatch(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		open := make(chan error)
		go func() { open <- barrier.NewCountDownLatch(recipes.On(zs.Client(t)), "/l", 3).Wait(ctx) }()
		l := barrier.NewCountDownLatch(recipes.On(zs.Client(t)), "/l", 3)
		for left := 3; left > 0; left-- {
			synctest.Wait()
			select {
			case err := <-open:
				t.Fatalf("open with %d missing: %v", left, err)
			default:
			}
			if n, err := l.Left(ctx); n != left || err != nil {
				t.Errorf("%d left, %v", n, err)
			}
			must.Do(t, l.CountDown(ctx))
		}
		must.Do(t, <-open)
		must.Do(t, l.Wait(ctx))
		rig.NoWatches(t, zs)
	})
}

func TestDoubleBarrier(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		const members = 5
		var entered, inside atomic.Int32
		done := make(chan struct{})
		for i := range members {
			d := barrier.NewDouble(recipes.On(zs.Client(t)), "/d", members)
			go func() {
				defer func() { done <- struct{}{} }()
				time.Sleep(time.Duration(i) * time.Second)
				entered.Add(1)
				if err := d.Enter(ctx); err != nil {
					t.Error(err)
				}
				if entered.Load() != members {
					t.Errorf("entered when %d members had arrived", entered.Load())
				}
				inside.Add(1)
				time.Sleep(time.Duration(i) * time.Minute)
				inside.Add(-1)
				if err := d.Leave(ctx); err != nil {
					t.Error(err)
				}
				if inside.Load() != 0 {
					t.Errorf("left when %d members were inside", inside.Load())
				}
			}()
		}
		for range members {
			<-done
		}
		if n := zs.Children("/d"); len(n) != 0 {
			t.Errorf("left behind: %v", n)
		}
		rig.NoWatches(t, zs)
	})
}

// A member that gives up should not count as entered.
func TestDoubleBarrierGivenUp(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		d := barrier.NewDouble(recipes.On(zs.Client(t)), "/d", 2)
		if err := d.Leave(ctx); err == nil {
			t.Error("left without entering")
		}
		if err := d.Enter(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("enter: %v", err)
		}
		if n := zs.Children("/d"); len(n) != 0 {
			t.Errorf("left behind: %v", n)
		}
		rig.NoWatches(t, zs)
	})
}

func TestBarrierAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		b := barrier.New(e.Conn, "/b")
		for _, step := range []func(context.Context) error{b.Close, b.Open, b.Wait} {
			if err := step(e.Ctx); err != nil && !e.Canceled() {
				e.Error(err)
			}
		}
		other := barrier.New(recipes.On(e.Other), "/b")
		if err := errors.Join(other.Open(e.Bounded()), other.Wait(e.Bounded())); err != nil {
			e.Error(err)
		}
		rig.NoWatches(e.T, e.Server)
	})
}

func TestCountDownAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		err := barrier.NewCountDownLatch(e.Conn, "/l", 1).CountDown(e.Ctx)
		if err != nil && !e.Canceled() {
			e.Error(err)
		}
		time.Sleep(50 * time.Second)
		n := 0
		if e.Server.Exists("/l") {
			n = len(e.Server.Children("/l"))
		}
		if n > 1 || err == nil && n != 1 {
			e.Errorf("counted %d times, %v", n, err)
		}
	})
}

func TestDoubleBarrierAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		other := barrier.NewDouble(recipes.On(e.Other), "/d", 2)
		ctx, cancel := context.WithTimeout(e.Bounded(), 5*time.Minute)
		defer cancel()
		done := make(chan error)
		go func() { done <- errors.Join(other.Enter(ctx), other.Leave(ctx)) }()
		d := barrier.NewDouble(e.Conn, "/d", 2)
		err := d.Enter(e.Ctx)
		if err == nil {
			err = d.Leave(e.Ctx)
		}
		expired := e.Fault == steps.Expiry && errors.Is(err, client.ErrSessionExpired)
		if err != nil && !e.Canceled() && !expired {
			e.Error(err)
		}
		if err := <-done; err != nil && !e.Canceled() && e.Fault != steps.Expiry {
			e.Errorf("the other: %v", err)
		}
		time.Sleep(50 * time.Second) // less than the minute after which empty containers are deleted
		if e.Server.Exists("/d") && len(e.Server.Children("/d")) != 0 {
			e.Errorf("left behind: %v", e.Server.Children("/d"))
		}
		rig.NoWatches(e.T, e.Server)
	})
}
