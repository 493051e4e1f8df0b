package election_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/election"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// observe returns the leaders that an observer sees, as fast as the client's requests
// allow.
func observe(ctx context.Context, t *testing.T, c *client.Client) <-chan string {
	seen := make(chan string, 10)
	go func() {
		for leader, err := range election.New(recipes.On(c), "/e", nil).Observe(ctx) {
			if err != nil {
				t.Error(err)
			}
			seen <- string(leader.Data)
		}
		close(seen)
	}()
	return seen
}

// An observer should see a candidate that joins between the observer's read and its watch.
func TestLeaderElectedBeforeTheWatch(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		defer stop()
		zs.Set("/e", "")
		c := zs.Client(t)
		watch := zs.DelayNext(zktest.Match{Op: proto.OpGetChildren, Path: "/e", Session: c.Session().ID, Nth: 2}, time.Second)
		seen := observe(ctx, t, c)
		watch.Wait()
		seesTerm(ctx, t, zs, seen)
	})
}

// Observe should continue after the end of the observer's session.
func TestObserverSessionEnds(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		defer stop()
		c := zs.Client(t)
		seen := observe(ctx, t, c)
		if who := <-seen; who != "" {
			t.Errorf("the observer sees %q", who)
		}
		synctest.Wait()
		zs.ExpireSession(c.Session().ID)
		time.Sleep(time.Minute)
		must.Get(election.New(recipes.On(zs.Client(t)), "/e", []byte("a")).Campaign(ctx))(t)
		if who, on := <-seen; !on || who != "a" {
			t.Errorf("the observer sees %q, %v", who, on)
		}
	})
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

// Immediately after a pause, a latch should not lead any more.
func TestLatchChecksTheClock(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		var now atomic.Bool
		l := election.NewLatch(ctx, stopped{recipes.On(zs.Client(t)), &now}, "/l", []byte("a"))
		defer l.Close()
		must.Get(l.Await(ctx))(t)
		now.Store(true)
		if l.HasLeadership() {
			t.Error("it leads")
		}
		now.Store(false)
	})
}

// An observer should wait while the election's directory has only children that don't use
// our layout.
func TestObserverAmongOtherChildren(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		defer stop()
		zs.Set("/e", "")
		zs.Set("/e/latch-other", "")
		seen := observe(ctx, t, zs.Client(t))
		for _, other := range []string{"", "/e/0123456789abcdef__lock__0000000000"} {
			if other != "" {
				zs.Set(other, "")
			} else if who := <-seen; who != "" {
				t.Errorf("the observer sees %q", who)
			}
			synctest.Wait() // ends only if the observer waits
			zs.WaitForWatch("/e")
		}
		seesTerm(ctx, t, zs, seen)
		stop()
		for range seen {
		}
		rig.NoWatches(t, zs)
	})
}

// seesTerm leads as a for a moment, and checks that the observer sees a come and go.
func seesTerm(ctx context.Context, t *testing.T, zs *zktest.Server, seen <-chan string) {
	t.Helper()
	term := must.Get(election.New(recipes.On(zs.Client(t)), "/e", []byte("a")).Campaign(ctx))(t)
	if who := <-seen; who != "a" {
		t.Errorf("the observer sees %q", who)
	}
	must.Do(t, term.Resign(ctx))
	if who := <-seen; who != "" {
		t.Errorf("the observer sees %q", who)
	}
}
