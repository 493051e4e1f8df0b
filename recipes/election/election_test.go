package election_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/election"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func candidate(t *testing.T, zs *zktest.Server, id string) *election.Election {
	return election.New(recipes.On(zs.Client(t)), "/e", []byte(id))
}

func TestCampaignObserveProclaimResign(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		defer stop()
		seen := make(chan string, 10)
		go func() {
			for leader, err := range candidate(t, zs, "observer").Observe(ctx) {
				if err != nil {
					t.Error(err)
				}
				seen <- string(leader.Data)
			}
			close(seen)
		}()
		expect := func(want string) {
			t.Helper()
			if got := <-seen; got != want {
				t.Errorf("the observer sees %q, not %q", got, want)
			}
		}
		expect("")
		a, b := candidate(t, zs, "a"), candidate(t, zs, "b")
		first := must.Get(a.Campaign(ctx))(t)
		expect("a")
		second := make(chan *election.Term)
		go func() {
			term, err := b.Campaign(ctx)
			if err != nil {
				t.Error(err)
			}
			second <- term
		}()
		synctest.Wait()
		list := must.Get(b.Candidates(ctx))(t)
		if len(list) != 2 || string(list[0].Data) != "a" || string(list[1].Data) != "b" {
			t.Errorf("candidates %v", list)
		}
		must.Do(t, first.Proclaim(ctx, []byte("a at port 1")))
		expect("a at port 1")
		must.Do(t, first.Resign(ctx))
		term := <-second
		expect("b")
		if err := first.Proclaim(ctx, nil); !errors.Is(err, lock.ErrReleased) {
			t.Errorf("a former leader proclaims: %v", err)
		}
		if term.Token() <= first.Token() {
			t.Errorf("token %d after %d", term.Token(), first.Token())
		}
		must.Do(t, term.Resign(ctx))
		expect("")
		if _, err := a.Leader(ctx); !errors.Is(err, election.ErrNoLeader) {
			t.Errorf("leader: %v", err)
		}
		stop()
		for range seen {
		}
		synctest.Wait()
		if w := zs.Watches(); len(w) != 0 {
			t.Errorf("watches are left: %v", w)
		}
	})
}

func TestRunLeadsAgainAfterALostTerm(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := zs.Client(t)
		e := election.New(recipes.On(c), "/e", nil)
		terms := 0
		failed := errors.New("enough")
		err := e.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			switch terms++; terms {
			case 1:
				zs.ExpireSession(c.Session().ID)
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), lock.ErrLost) {
					t.Errorf("the term ended because of %v", context.Cause(ctx))
				}
				return ctx.Err()
			case 2:
				return election.Again()
			}
			return failed
		})
		if !errors.Is(err, failed) || terms != 3 {
			t.Errorf("%v after %d terms", err, terms)
		}
		if n := zs.Children("/e"); len(n) != 0 {
			t.Errorf("left: %v", n)
		}
	})
}

func TestLatch(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		ca, cb := zs.Client(t), zs.Client(t)
		a := election.NewLatch(ctx, recipes.On(ca), "/latch", []byte("a"))
		must.Get(a.Await(ctx))(t)
		b := election.NewLatch(ctx, recipes.On(cb), "/latch", []byte("b"))
		synctest.Wait()
		if !a.HasLeadership() || b.HasLeadership() {
			t.Error("the second leads")
		}
		zs.ExpireSession(ca.Session().ID)
		must.Get(b.Await(ctx))(t)
		time.Sleep(time.Second) // the client had no warning that the session would end
		if a.HasLeadership() {
			t.Error("two lead")
		}
		if l, err := a.Leader(ctx); err != nil || string(l.Data) != "b" {
			t.Errorf("leader %q, %v", l.Data, err)
		}
		b.Close()
		if b.HasLeadership() || !errors.Is(b.Err(), election.ErrLatchClosed) {
			t.Errorf("a closed latch: %v", b.Err())
		}
		if _, err := b.Await(ctx); !errors.Is(err, election.ErrLatchClosed) {
			t.Errorf("waiting for a closed latch: %v", err)
		}
		_, err := a.Await(ctx) // it has campaigned again automatically
		must.Do(t, err)
		a.Close()
		if n := zs.Children("/latch"); len(n) != 0 {
			t.Errorf("left: %v", n)
		}
	})
}

func TestInterrupt(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		e := candidate(t, zs, "a")
		must.Do(t, e.Run(ctx, func(ctx context.Context, term *election.Term) error {
			if err := candidate(t, zs, "b").Interrupt(ctx); err != nil {
				return err
			}
			<-term.RevokeRequested()
			return nil
		}))
	})
}

// A panic should not leave a leader.
func TestPanicResigns(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		func() {
			defer func() { _ = recover() }()
			_ = candidate(t, zs, "a").Run(rig.Within(t), func(context.Context, *election.Term) error { panic("lead") })
		}()
		term := must.Get(candidate(t, zs, "b").Campaign(rig.Within(t)))(t)
		must.Do(t, term.Resign(rig.Within(t)))
	})
}

func TestElectionAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		led := false
		err := election.New(e.Conn, "/e", []byte("a")).Run(e.Ctx, func(context.Context, *election.Term) error {
			led = true
			return nil
		})
		if !e.Canceled() && (err != nil || !led) {
			e.Errorf("run: %v, led: %v", err, led)
		}
		next, err := election.New(recipes.On(e.Other), "/e", nil).Campaign(e.Bounded())
		if err != nil {
			e.Fatalf("no candidate can lead afterwards: %v", err)
		}
		_ = next.Resign(e.Bounded())
		time.Sleep(5 * time.Second)
		if n := e.Server.Children("/e"); len(n) != 0 {
			e.Errorf("left: %v", n)
		}
	})
}

// CURATOR-696: a latch that was disconnected for longer than its session lives finds
// its old znode when it reconnects, mistakes it for its own, and leads beside another
// candidate.
func TestLatchDoesNotLeadOnAnOldZnode(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		var off atomic.Bool
		ca := zs.Client(t, client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
			if off.Load() {
				return nil, errors.New("cut off")
			}
			return zs.Dial()
		}))
		a := election.NewLatch(ctx, recipes.On(ca), "/latch", []byte("a"))
		former := must.Get(a.Await(ctx))(t)
		b := election.NewLatch(ctx, recipes.On(zs.Client(t)), "/latch", []byte("b"))
		off.Store(true)
		resume := zs.HangConnection(ca.Session().ID)
		must.Get(b.Await(ctx))(t)
		if a.HasLeadership() || former.Err() == nil {
			t.Error("two candidates lead while one is disconnected")
		}
		off.Store(false)
		resume()
		for range 60 {
			time.Sleep(time.Second)
			if a.HasLeadership() || !b.HasLeadership() {
				t.Fatalf("a leads: %v, b leads: %v", a.HasLeadership(), b.HasLeadership())
			}
		}
		if n := len(zs.Children("/latch")); n != 2 {
			t.Errorf("%d znodes of two latches", n)
		}
		b.Close()
		again := must.Get(a.Await(ctx))(t)
		if again.Token() <= former.Token() {
			t.Errorf("token %d after %d", again.Token(), former.Token())
		}
		a.Close()
	})
}
