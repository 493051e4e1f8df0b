package partition_test

import (
	"context"
	"errors"
	"net"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/partition"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// board records which member works on which item, and fails the test if two members work on
// the same item.
type board struct {
	t    *testing.T
	tidy time.Duration // how long a worker continues after its context has ended

	mu sync.Mutex
	by map[string]string
}

func newBoard(t *testing.T, tidy time.Duration) *board {
	return &board{t: t, tidy: tidy, by: map[string]string{}}
}

// work keeps a share until the member must give it up.
func (b *board) work(id string) func(ctx context.Context, share partition.Share) error {
	return func(ctx context.Context, share partition.Share) error {
		b.mu.Lock()
		for _, item := range share.Items {
			if other := b.by[item]; other != "" {
				b.t.Errorf("%s and %s work on %s", other, id, item)
			}
			b.by[item] = id
			if err := share.Leases[item].Err(); err != nil {
				b.t.Errorf("%s works on %s: %v", id, item, err)
			}
		}
		b.mu.Unlock()
		<-ctx.Done()
		time.Sleep(b.tidy)
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, item := range share.Items {
			delete(b.by, item)
		}
		return nil
	}
}

// String returns the member that works on each item, or a dot if there is none.
func (b *board) String() (s string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, item := range []string{"s1", "s2", "s3", "s4", "s5"} {
		if id, ok := b.by[item]; ok {
			s += id
		} else {
			s += "."
		}
	}
	return s
}

var set = []string{"s3", "s1", "s2", "s5", "s4", "s1"}

// run runs a member until leave is called.
func (b *board) run(conn recipes.Conn, id string, opts ...partition.Option) (p *partition.Partitioner, leave func()) {
	ctx, cancel := context.WithCancel(rig.Within(b.t))
	done := make(chan struct{})
	p = partition.New(conn, "/p", id, set, append([]partition.Option{partition.WithQuietTime(5 * time.Second)}, opts...)...)
	go func() {
		defer close(done)
		if err := p.Run(ctx, b.work(id)); !errors.Is(err, context.Canceled) {
			b.t.Errorf("%s: %v", id, err)
		}
	}()
	return p, func() { cancel(); <-done }
}

// expect fails unless the board shows want within a minute.
func (b *board) expect(want string) {
	b.t.Helper()
	time.Sleep(time.Minute)
	if got := b.String(); got != want {
		b.t.Errorf("shares %s, not %s", got, want)
	}
}

// nothingLeft fails if a member, a lock or a watch still exists.
func nothingLeft(t *testing.T, zs *zktest.Server) {
	t.Helper()
	synctest.Wait()
	if e, w := zs.Ephemerals(), zs.Watches(); len(e) != 0 || len(w) != 0 {
		t.Errorf("left: znodes %v, watches %v", e, w)
	}
}

func TestSharesFollowTheMembers(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		b := newBoard(t, 100*time.Millisecond)
		c := zs.Client(t)
		_, leaveA := b.run(recipes.On(c), "a")
		b.expect("aaaaa")
		_, leaveB := b.run(recipes.On(zs.Client(t)), "b")
		b.expect("ababa")
		_, leaveC := b.run(recipes.On(zs.Client(t)), "c")
		b.expect("abcab")
		zs.ExpireSession(c.Session().ID)
		b.expect("abcab")
		zs.DropConnections()
		b.expect("abcab")
		leaveB()
		b.expect("acaca")
		leaveA()
		b.expect("ccccc")
		leaveC()
		b.expect(".....")
		nothingLeft(t, zs)
	})
}

// A restart within the quiet time should move no item to another member.
func TestQuietTime(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		b := newBoard(t, 0)
		quiet := partition.WithQuietTime(time.Minute + time.Second) // no tie with expect
		_, leaveA := b.run(recipes.On(zs.Client(t)), "a", quiet)
		b.expect(".....")
		b.expect("aaaaa")
		_, leaveB := b.run(recipes.On(zs.Client(t)), "b", quiet)
		time.Sleep(time.Second)
		leaveB()
		time.Sleep(58 * time.Second)
		if got := b.String(); got != "....." {
			t.Errorf("shares %s were assigned before the party was quiet", got)
		}
		b.expect("aaaaa")
		leaveA()
	})
}

func TestLayoutIsKazoos(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		b := newBoard(t, 0)
		_, leave := b.run(recipes.On(zs.Client(t)), "a-1")
		time.Sleep(time.Minute)
		party, locks := regexp.MustCompile(`^[0-9a-f]{32}-a-1$`), regexp.MustCompile(`^[0-9a-f]{32}__lock__0000000000$`)
		if names := zs.Children("/p/party"); len(names) != 1 || !party.MatchString(names[0]) || zs.Get("/p/party/"+names[0]) != "a-1" {
			t.Errorf("party %v", names)
		}
		if names := zs.Children("/p/locks"); len(names) != 5 {
			t.Errorf("locks %v", names)
		}
		if names := zs.Children("/p/locks/s1"); len(names) != 1 || !locks.MatchString(names[0]) || zs.Get("/p/locks/s1/"+names[0]) != "a-1" {
			t.Errorf("the lock of s1: %v", names)
		}
		leave()
		nothingLeft(t, zs)
	})
}

func TestStates(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		b := newBoard(t, time.Minute)
		var p *partition.Partitioner
		is := func(want partition.State) {
			t.Helper()
			if got := p.State(); got != want {
				t.Errorf("state %v, not %v", got, want)
			}
		}
		p, leave := b.run(recipes.On(zs.Client(t)), "a")
		time.Sleep(time.Second)
		is(partition.Allocating)
		b.expect("aaaaa")
		is(partition.Acquired)
		if err := p.Run(rig.Within(t), b.work("a")); !errors.Is(err, partition.ErrRunning) {
			t.Errorf("a second run: %v", err)
		}
		_, leaveB := b.run(recipes.On(zs.Client(t)), "b")
		time.Sleep(10 * time.Second)
		is(partition.Releasing)
		time.Sleep(time.Minute)
		is(partition.Acquired)
		leaveB()
		leave()
		is(partition.Ended)
		nothingLeft(t, zs)
	})
}

// both makes two members claim the same item.
var both = partition.WithShares(func(_ string, _, set []string) []string { return set[:1] })

// If a member is cut off, it should have to finish before another member gets the item: by
// then a worker that finishes immediately has finished.
func TestCutOffMemberFinishesFirst(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		b := newBoard(t, 0)
		var off atomic.Bool
		c := zs.Client(t, client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
			if off.Load() {
				return nil, net.ErrClosed
			}
			return zs.Dial()
		}))
		_, leaveB := b.run(recipes.On(zs.Client(t)), "b", both)
		time.Sleep(time.Second)
		_, leaveA := b.run(recipes.On(c), "a", both, partition.WithQuietTime(time.Second))
		b.expect("a....") // a's quiet time is shorter
		off.Store(true)
		zs.HangConnection(c.Session().ID)
		b.expect("b....")
		off.Store(false)
		time.Sleep(time.Minute)
		leaveB()
		b.expect("a....")
		leaveA()
		nothingLeft(t, zs)
	})
}

// While the session lives, no other member should get an item before its worker has
// returned.
func TestSlowWorkerKeepsItsItems(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		b := newBoard(t, 10*time.Minute)
		_, leaveA := b.run(recipes.On(zs.Client(t)), "a")
		b.expect("aaaaa")
		_, leaveB := b.run(recipes.On(zs.Client(t)), "b")
		b.expect("aaaaa")
		time.Sleep(10 * time.Minute)
		b.expect("ababa")
		go leaveA()
		leaveB()
	})
}

func TestErrors(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		c := zs.Client(t)
		conn, enough := recipes.On(c), errors.New("enough")
		try := func(ctx context.Context, id string, set []string, opts ...partition.Option) error {
			return partition.New(conn, "/p", id, set, opts...).Run(ctx, func(_ context.Context, share partition.Share) error {
				if !slices.Equal(share.Items, []string{"s1"}) || share.Leases["s1"].Token() == 0 {
					t.Errorf("share %v", share)
				}
				return enough
			})
		}
		if err := try(rig.Within(t), "a", set, both); !errors.Is(err, enough) {
			t.Errorf("of work: %v", err)
		}
		for _, bad := range [][]string{{"a/b"}, {""}, {".."}} {
			if err := try(rig.Within(t), "a", bad); !errors.Is(err, partition.ErrBadItem) {
				t.Errorf("items %q: %v", bad, err)
			}
		}
		if err := try(rig.Within(t), "a/b", set); !errors.Is(err, partition.ErrBadItem) {
			t.Errorf("id: %v", err)
		}
		foreign := partition.WithShares(func(string, []string, []string) []string { return []string{"s9"} })
		if err := try(rig.Within(t), "a", set, foreign); !errors.Is(err, partition.ErrBadItem) {
			t.Errorf("a share outside the set: %v", err)
		}
		short, cancel := context.WithTimeout(rig.Within(t), 3*time.Second)
		defer cancel()
		zs.FailNext(zktest.Match{Op: proto.OpCreate}, proto.ErrNoAuth)
		if err := try(short, "a", set); !errors.Is(err, client.ErrNoAuth) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("not admitted: %v", err)
		}
		nothingLeft(t, zs)
		_ = c.Close()
		if err := try(rig.Within(t), "a", set); !errors.Is(err, client.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	})
}

func TestPartitionAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		b := newBoard(e.T, time.Millisecond)
		quiet := partition.WithQuietTime(time.Second)
		stop, cancel := context.WithCancel(e.Bounded())
		defer cancel()
		var all sync.WaitGroup
		member := func(ctx context.Context, conn recipes.Conn, id string) {
			err := partition.New(conn, "/p", id, []string{"s1", "s2"}, quiet).Run(ctx, b.work(id))
			if !errors.Is(err, context.Canceled) {
				e.Errorf("%s: %v", id, err)
			}
		}
		ctx, done := context.WithCancel(e.Ctx)
		defer done()
		all.Go(func() { member(ctx, e.Conn, "a") })
		all.Go(func() { member(stop, recipes.On(e.Other), "b") })
		time.Sleep(25 * time.Second)
		want := "ab..."
		if e.Ctx.Err() != nil {
			want = "bb..."
		}
		if got := b.String(); got != want {
			e.Errorf("shares %s, not %s", got, want)
		}
		done()
		time.Sleep(15 * time.Second)
		if got := b.String(); got != "bb..." {
			e.Errorf("shares %s when a has left", got)
		}
		cancel()
		all.Wait()
		nothingLeft(e.T, e.Server)
	})
}
