package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/barrier"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// rounds is how often TestDoubleBarrierRounds repeats a round.
func rounds() int {
	if testing.Short() {
		return 200
	}
	return 2000
}

// TestDoubleBarrierRounds repeats rounds without a pause between them, with members that
// are randomly fast or slow. Without the number of the round, the test would get stuck
// after a few rounds: a member that leaves would wait for a znode of the next round.
func TestDoubleBarrierRounds(t *testing.T) {
	for _, members := range []int{2, 3, 5} {
		for _, expire := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d members, sessions end %v", members, expire), func(t *testing.T) {
				rig.Run(t, func(t *testing.T, zs *zktest.Server) { newLoop(t, zs, members).run(t, expire) })
			})
		}
	}
}

// loop runs members that enter and leave until each has done all rounds.
type loop struct {
	zs      *zktest.Server
	clients []*client.Client
	cancel  context.CancelFunc
	due     chan struct{} // signals that a session should end

	mu      sync.Mutex
	random  *rand.Rand
	clock   int // counts Enters and Leaves: orders them even at one instant of fake time
	members []progress
	expired map[int64]bool
	left    int // members that have not done all rounds
}

// progress is what one member has done.
type progress struct {
	rounds  int
	inside  bool
	entered int   // loop.clock when Enter returned
	session int64 // session in which it entered
}

func newLoop(t *testing.T, zs *zktest.Server, members int) *loop {
	l := &loop{
		zs: zs, due: make(chan struct{}, 1), random: rand.New(rand.NewPCG(uint64(members), 1)), members: make([]progress, members), expired: make(map[int64]bool), left: members,
	}
	for range members {
		l.clients = append(l.clients, zs.Client(t))
	}
	return l
}

func (l *loop) run(t *testing.T, expire bool) {
	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = cancel
	defer cancel()
	var all sync.WaitGroup
	for i := range l.clients {
		all.Go(func() { l.member(ctx, t, i) })
	}
	if expire {
		all.Go(func() { l.expire(ctx) })
	}
	all.Wait()
	if expire { // a cancelled member is cleaned up in the background
		time.Sleep(time.Second)
	}
	if n := rig.Children(l.zs, "/d"); len(n) != 0 {
		t.Errorf("left over: %v", n)
	}
	rig.NoWatches(t, l.zs)
}

// member enters and leaves until all members have done all rounds.
func (l *loop) member(ctx context.Context, t *testing.T, i int) {
	d := barrier.NewDouble(recipes.On(l.clients[i]), "/d", len(l.clients))
	for ctx.Err() == nil {
		called := l.now()
		err := l.bounded(ctx, d.Enter)
		switch {
		case errors.Is(err, client.ErrSessionExpired):
			continue
		case err != nil && ctx.Err() == nil:
			t.Errorf("member %d, round %d: %v", i, l.members[i].rounds, err)
			l.cancel()
			return
		case err != nil:
			return
		}
		l.enter(t, i, called)
		time.Sleep(l.pause())
		l.leave(i)
		if err := l.bounded(ctx, d.Leave); err != nil && ctx.Err() == nil {
			t.Errorf("member %d, round %d: %v", i, l.members[i].rounds, err)
			l.cancel()
			return
		}
		time.Sleep(l.pause())
		l.finish(i)
	}
}

// bounded gives a call an hour of fake time: a member that waits longer is stuck.
func (l *loop) bounded(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	return call(ctx)
}

func (l *loop) now() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	return l.clock
}

// enter records that member i has entered. It fails the test if a member that entered
// before member i called Enter hasn't left yet, because that member is in an earlier round.
func (l *loop) enter(t *testing.T, i, called int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	for j, other := range l.members {
		if j != i && other.inside && other.entered < called && !l.expired[other.session] {
			t.Errorf("member %d began a round while member %d was in the previous one", i, j)
			l.cancel()
		}
	}
	l.members[i].inside, l.members[i].entered, l.members[i].session = true, l.clock, l.clients[i].Session().ID
}

func (l *loop) leave(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members[i].inside = false
}

func (l *loop) finish(i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.members[i].rounds++
	if l.members[i].rounds%20 == 0 {
		select {
		case l.due <- struct{}{}:
		default:
		}
	}
	if l.members[i].rounds == rounds() {
		if l.left--; l.left == 0 {
			l.cancel()
		}
	}
}

func (l *loop) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.random.IntN(2) == 0 {
		return 0
	}
	return time.Duration(l.random.Int64N(int64(time.Millisecond)))
}

// expire ends a session shortly after each signal, whatever its owner is doing then.
func (l *loop) expire(ctx context.Context) {
	for {
		select {
		case <-l.due:
		case <-ctx.Done():
			return
		}
		_ = recipe.Sleep(ctx, l.pause())
		sessions := l.zs.Sessions()
		if len(sessions) == 0 || ctx.Err() != nil {
			continue
		}
		l.mu.Lock()
		id := sessions[l.random.IntN(len(sessions))].ID
		l.expired[id] = true
		l.mu.Unlock()
		l.zs.ExpireSession(id)
	}
}

// If a member dies after the round began, the round should still end.
func TestDoubleBarrierAfterMembersDie(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		enter := func() (wait func()) {
			var all sync.WaitGroup
			for range 2 {
				c := zs.Client(t)
				all.Go(func() {
					if err := barrier.NewDouble(recipes.On(c), "/d", 2).Enter(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			return all.Wait
		}
		enter()()
		second := enter()
		synctest.Wait()
		for _, s := range zs.Sessions()[:2] {
			zs.ExpireSession(s.ID)
		}
		second()
		rig.NoWatches(t, zs)
	})
}

// Versions wrap, and a condition on version -1 is always true, so we should not leave the
// directory at that version.
func TestDoubleBarrierAtVersionMinusOne(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Set("/d", "")
		for round := range 4 {
			var all sync.WaitGroup
			for range 2 {
				conn := rig.ShiftVersions(recipes.On(zs.Client(t)), -3)
				all.Go(func() {
					d := barrier.NewDouble(conn, "/d", 2)
					if err := errors.Join(d.Enter(ctx), d.Leave(ctx)); err != nil {
						t.Errorf("round %d: %v", round, err)
					}
				})
			}
			all.Wait()
		}
		if n := zs.Children("/d"); len(n) != 0 {
			t.Errorf("left over: %v", n)
		}
	})
}

// A slow waiter should not miss an opening even if the gate is closed again.
func TestBarrierOpenedForAMoment(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		b := barrier.New(recipes.On(zs.Client(t)), "/b")
		must.Do(t, b.Close(ctx))
		waiter := zs.Client(t)
		passed := make(chan error, 1)
		go func() { passed <- barrier.New(recipes.On(waiter), "/b").Wait(ctx) }()
		zs.WaitForWatch("/b")
		// The waiter's next read is delayed until the gate is closed again.
		zs.DelayNext(zktest.Match{Op: proto.OpGetData, Path: "/b"}, time.Minute)
		must.Do(t, b.Open(ctx))
		must.Do(t, b.Close(ctx))
		must.Do(t, <-passed)
		rig.NoWatches(t, zs)
	})
}

// cutOff returns a client, and a function that cuts it off from the server until
// resume is called.
func cutOff(t *testing.T, zs *zktest.Server) (c *client.Client, cut func() (resume func())) {
	var off atomic.Bool
	c = zs.Client(t, client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		if off.Load() {
			return nil, errors.New("cut off")
		}
		return zs.Dial()
	}))
	return c, func() func() {
		off.Store(true)
		resume := zs.HangConnection(c.Session().ID)
		return func() {
			off.Store(false)
			resume()
		}
	}
}

// A client considers its session lost before the server ends it. In between, we should not
// count the member's former znode as another member.
func TestDoubleBarrierCountsNoFormerZnode(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("delete refused %v", refused), func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				ctx := rig.Within(t)
				c, cut := cutOff(t, zs)
				d := barrier.NewDouble(recipes.On(c), "/d", 2)
				first := make(chan error)
				go func() { first <- d.Enter(ctx) }()
				zs.WaitForWatch("/d/ready")
				synctest.Wait()
				former, name := c.Session().ID, zs.Children("/d")
				if refused {
					zs.FailAll(zktest.Match{Op: proto.OpDelete, Path: "/d/*"}, proto.ErrNoAuth)
				}
				resume := cut()
				if err := <-first; !errors.Is(err, client.ErrSessionExpired) {
					t.Fatalf("enter: %v", err)
				}
				if !slices.ContainsFunc(zs.Sessions(), func(s zktest.Session) bool { return s.ID == former }) {
					t.Fatal("the server has ended the session already")
				}
				resume()
				second := make(chan error)
				go func() { second <- d.Enter(ctx) }()
				zs.Wait("the member's second znode", func() bool {
					return slices.ContainsFunc(zs.Children("/d"), func(n string) bool { return n != name[0] })
				})
				time.Sleep(time.Minute)
				select {
				case err := <-second:
					t.Fatalf("one of two members has entered: %v", err)
				default:
				}
				other := barrier.NewDouble(recipes.On(zs.Client(t)), "/d", 2)
				must.Do(t, other.Enter(ctx))
				must.Do(t, <-second)
				if names := zs.Children("/d"); len(names) != 3 {
					t.Errorf("two members and ready: %v", names)
				}
			})
		})
	}
}

// While a member's reads are slow, a Kazoo member can create ready, enter, begin to leave
// and delete ready again. It then waits for the slow member, so the slow member must not
// wait for ready.
func TestDoubleBarrierReadyDeletedBeforeRead(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		zs.Set("/d", "")
		c, kazoo := zs.Client(t), zs.Client(t)
		zs.DelayNext(zktest.Match{Op: proto.OpExists, Path: "/d/*", Session: c.Session().ID, Nth: 2}, time.Minute)
		d := barrier.NewDouble(recipes.On(c), "/d", 2)
		entered := make(chan error)
		go func() { entered <- d.Enter(ctx) }()
		zs.Wait("the member's znode", func() bool { return len(zs.Children("/d")) == 1 })
		for _, err := range []error{
			create(ctx, kazoo, "/d/kazoo", client.Ephemeral),
			create(ctx, kazoo, "/d/ready", client.Ephemeral),
			kazoo.Delete(ctx, "/d/ready", client.AnyVersion),
			kazoo.Delete(ctx, "/d/kazoo", client.AnyVersion),
		} {
			must.Do(t, err)
		}
		must.Do(t, <-entered)
		must.Do(t, d.Leave(ctx)) // now Kazoo's member has left, too
		if names := zs.Children("/d"); len(names) != 0 {
			t.Errorf("left over: %v", names)
		}
		rig.NoWatches(t, zs)
	})
}

func create(ctx context.Context, c *client.Client, path string, flags client.CreateFlag) error {
	_, err := c.Create(ctx, path, nil, flags)
	return err
}
