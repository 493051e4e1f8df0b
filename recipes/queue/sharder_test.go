package queue_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/queue"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
	"github.com/zkgo/zkgo/tests/kit/steps"
)

// shard opens a sharder with a threshold of four items and checks every ten seconds,
// unless opts say otherwise.
func shard(t *testing.T, conn recipes.Conn, opts ...queue.ShardOption) *queue.Sharder[*queue.Queue] {
	t.Helper()
	opts = append([]queue.ShardOption{queue.WithShardThreshold(4), queue.WithShardCheckInterval(10 * time.Second)}, opts...)
	s := must.Get(queue.NewSharder(rig.Within(t), conn, "/q", "/leader", queue.New, opts...))(t)
	t.Cleanup(s.Close)
	return s
}

func fill(t *testing.T, q *queue.Queue, items int) {
	t.Helper()
	for i := range items {
		must.Do(t, q.Put(rig.Within(t), []byte{byte('a' + i)}))
	}
}

// given counts the queues that a sharder returns.
func given(s *queue.Sharder[*queue.Queue]) map[*queue.Queue]int {
	seen := make(map[*queue.Queue]int)
	for range 200 {
		seen[s.Queue()]++
	}
	return seen
}

// Two sharders should add only one queue when a queue is long, and both should use the new
// queue.
func TestShardIsAddedOnce(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		a, b := shard(t, on(t, zs), queue.WithMaxShards(2)), shard(t, on(t, zs), queue.WithMaxShards(2))
		first := a.Paths()
		name := regexp.MustCompile(`^/q/queue-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
		if len(first) != 1 || !name.MatchString(first[0]) || !slices.Equal(first, b.Paths()) {
			t.Fatalf("at first %v and %v", first, b.Paths())
		}
		synctest.Wait()
		latch := regexp.MustCompile(`^_c_[0-9a-f-]{36}-latch-\d{10}$`)
		for _, n := range zs.Children("/leader") {
			if !latch.MatchString(n) {
				t.Errorf("latch %s", n)
			}
		}
		long := a.Queue()
		fill(t, long, 3)
		time.Sleep(11 * time.Second)
		if n := len(zs.Children("/q")); n != 1 {
			t.Fatalf("%d queues for 3 items", n)
		}
		fill(t, long, 1)
		time.Sleep(10 * time.Second)
		if now := len(zs.Children("/q")); now != 2 || len(a.Paths()) != 2 || !slices.Equal(a.Paths(), b.Paths()) {
			t.Fatalf("%d queues, of which one knows %v, the other %v", now, a.Paths(), b.Paths())
		}
		for _, s := range []*queue.Sharder[*queue.Queue]{a, b} {
			if seen := given(s); len(seen) != 1 || seen[long] != 0 {
				t.Errorf("the long queue was returned: %v", seen)
			}
		}
		// When both queues are long, both are returned, and the number of queues is
		// at its maximum.
		short := a.Queue()
		fill(t, short, 4)
		time.Sleep(time.Minute)
		if n := len(zs.Children("/q")); n != 2 || len(given(a)) != 2 {
			t.Errorf("%d queues, %d returned", n, len(given(a)))
		}
		// If one queue has dropped to half of the threshold, Queue should return only that
		// one.
		for i := range 2 {
			if len(given(a)) != 2 {
				t.Errorf("with %d items gone one is full, the other not", i)
			}
			item := must.Get(long.Take(rig.Within(t)))(t)
			must.Do(t, item.Ack(rig.Within(t)))
			time.Sleep(10 * time.Second)
		}
		if seen := given(a); len(seen) != 1 || seen[long] == 0 {
			t.Errorf("not the shorter one: %v", seen)
		}
	})
}

// Each check that finds a long queue should add one queue, as in Curator.
func TestOneShardACheck(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		a := shard(t, on(t, zs), queue.WithMaxShards(4))
		shard(t, on(t, zs), queue.WithMaxShards(4))
		fill(t, a.Queue(), 4)
		time.Sleep(time.Second)
		for want := 2; want <= 6; want++ {
			time.Sleep(10 * time.Second)
			if n := len(zs.Children("/q")); n != min(want, 4) {
				t.Errorf("%d queues after %d checks", n, want-1)
			}
		}
	})
}

// If another client adds a queue, we should know it before the next check.
func TestShardOfAnotherIsSeen(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		a := shard(t, on(t, zs))
		synctest.Wait() // a leads
		b := shard(t, on(t, zs), queue.WithShardCheckInterval(time.Hour))
		fill(t, a.Queue(), 4)
		time.Sleep(11 * time.Second)
		if len(b.Paths()) != 2 || !slices.Equal(a.Paths(), b.Paths()) {
			t.Errorf("%v and %v", a.Paths(), b.Paths())
		}
		zs.Set("/q/java", "") // any name works
		synctest.Wait()
		if !slices.Contains(b.Paths(), "/q/java") {
			t.Errorf("no /q/java in %v", b.Paths())
		}
		zs.Delete("/q/java")
		time.Sleep(11 * time.Second)
		if err := a.Err(); err != nil || !slices.Contains(a.Paths(), "/q/java") {
			t.Errorf("deleted: %v, %v", err, a.Paths())
		}
	})
}

// When the leader's session ends, another sharder should add queues.
func TestSharderLeaderIsLost(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		c := zs.Client(t)
		a := shard(t, recipes.On(c))
		synctest.Wait() // a leads
		b := shard(t, on(t, zs))
		fill(t, a.Queue(), 4)
		zs.ExpireSession(c.Session().ID)
		for want := 2; want <= 3; want++ {
			time.Sleep(11 * time.Second)
			if n := len(b.Paths()); n != want || want == 2 && !slices.Equal(a.Paths(), b.Paths()) {
				t.Errorf("%d queues, not %d; %v and %v", n, want, a.Paths(), b.Paths())
			}
			a.Close() // it no longer leads anyway
		}
	})
}

// We should put items into all queues and get items from all queues, including queues that
// are added later.
func TestItemsOfAllShards(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Seed(map[string]string{"/q/queue-a": "", "/q/queue-b": "", "/q/queue-c": ""})
		s := shard(t, on(t, zs), queue.WithShardThreshold(1000))
		const items = 150
		for i := range items {
			must.Do(t, s.Queue().Put(rig.Within(t), []byte{byte(i)}))
		}
		for _, p := range []string{"/q/queue-a", "/q/queue-b", "/q/queue-c"} {
			if len(zs.Children(p)) == 0 {
				t.Errorf("no item was put into %s", p)
			}
		}
		ctx, stop := context.WithCancel(rig.Within(t))
		var mu sync.Mutex
		calls, got := make(map[*queue.Queue]int), make(map[byte]int)
		over := make(chan error)
		go func() {
			over <- s.Run(ctx, func(ctx context.Context, q *queue.Queue) error {
				mu.Lock()
				calls[q]++
				mu.Unlock()
				for item, err := range q.Items(ctx) {
					if err != nil {
						return err
					}
					mu.Lock()
					got[item.Values[0][0]]++
					mu.Unlock()
					if err := item.Ack(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}()
		time.Sleep(time.Minute)
		zs.Set("/q/queue-d", "")
		must.Do(t, queue.New(on(t, zs), "/q/queue-d", queue.WithClaims("/q-claims/queue-d")).Put(rig.Within(t), []byte{items}))
		time.Sleep(time.Minute)
		stop()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
		if len(got) != items+1 || slices.Max(slices.Collect(maps.Values(got))) != 1 {
			t.Errorf("%d items of %d: %v", len(got), items+1, got)
		}
		if len(calls) != 4 || slices.Max(slices.Collect(maps.Values(calls))) != 1 {
			t.Errorf("%d consumers, %v", len(calls), calls)
		}
		// The directory of claims should not be mistaken for a queue.
		if n := rig.Children(zs, "/q"); len(n) != 4 || !zs.Exists("/q-claims") {
			t.Errorf("queues %v", n)
		}
		s.Close()
		rig.NoWatches(t, zs)
	})
}

// The error of one consumer should end all consumers.
func TestShardsRunFails(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Seed(map[string]string{"/q/queue-a": "", "/q/queue-b": ""})
		s := shard(t, on(t, zs))
		broken := errors.New("broken")
		bad, ended := s.Queue(), false
		err := s.Run(rig.Within(t), func(ctx context.Context, q *queue.Queue) error {
			if q == bad {
				return broken
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			ended = true
			return nil
		})
		if !errors.Is(err, broken) || !ended {
			t.Errorf("run: %v, the other has ended: %v", err, ended)
		}
	})
}

// Err should report a failed check until a check succeeds.
func TestShardCheckFails(t *testing.T) {
	for what, m := range map[string]zktest.Match{
		"list":    {Op: proto.OpGetChildren, Path: "/q"},
		"measure": {Op: proto.OpExists, Path: "/q/queue-a"},
		"add":     {Op: proto.OpMulti},
	} {
		t.Run(what, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				zs.Set("/q/queue-a", "")
				s := shard(t, on(t, zs))
				fill(t, s.Queue(), 4)
				if err := s.Err(); err != nil {
					t.Errorf("before: %v", err)
				}
				refusal := zs.FailAll(m, proto.ErrNoAuth)
				time.Sleep(11 * time.Second)
				if err := s.Err(); !errors.Is(err, client.ErrNoAuth) || len(s.Paths()) != 1 {
					t.Errorf("refused: %v, %v", err, s.Paths())
				}
				refusal.Cancel()
				time.Sleep(10 * time.Second)
				if err := s.Err(); err != nil || len(s.Paths()) != 2 {
					t.Errorf("not refused any more: %v, %v", err, s.Paths())
				}
				s.Close()
				rig.NoWatches(t, zs)
			})
		})
	}
}

// If a sharder has no permission to take part in the election, it should report that and
// try again later.
func TestSharderMayNotLead(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		refusal := zs.FailAll(zktest.Match{Op: proto.OpCreate, Path: "/leader*"}, proto.ErrNoAuth)
		s := shard(t, on(t, zs))
		fill(t, s.Queue(), 4)
		time.Sleep(21 * time.Second)
		if err := s.Err(); !errors.Is(err, client.ErrNoAuth) || len(s.Paths()) != 1 {
			t.Errorf("refused: %v, %v", err, s.Paths())
		}
		refusal.Cancel()
		time.Sleep(20 * time.Second)
		if err := s.Err(); err != nil || len(s.Paths()) < 2 {
			t.Errorf("not refused any more: %v, %v", err, s.Paths())
		}
	})
}

func TestSharderCannotBegin(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		conn := on(t, zs)
		for _, leader := range []string{"/q", "/q/leader"} {
			if _, err := queue.NewSharder(rig.Within(t), conn, "/q", leader, queue.New); !errors.Is(err, queue.ErrBadSharder) {
				t.Errorf("leader at %s: %v", leader, err)
			}
		}
		for i, o := range []queue.ShardOption{queue.WithShardThreshold(0), queue.WithShardCheckInterval(0), queue.WithMaxShards(0)} {
			if _, err := queue.NewSharder(rig.Within(t), conn, "/q", "/q2", queue.New, o); !errors.Is(err, queue.ErrBadSharder) {
				t.Errorf("option %d: %v", i, err)
			}
		}
		zs.FailAll(zktest.Match{Op: proto.OpCreate, Path: "/q/*"}, proto.ErrNoAuth)
		if _, err := queue.NewSharder(rig.Within(t), conn, "/q", "/leader", queue.NewDelay); !errors.Is(err, client.ErrNoAuth) {
			t.Errorf("refused: %v", err)
		}
		rig.NoWatches(t, zs)
	})
}

// Close should leave only the queues, and end Run.
func TestSharderCloses(t *testing.T) {
	for name, end := range map[string]func(s *queue.Sharder[*queue.Queue], c *client.Client) error{
		"sharder": func(s *queue.Sharder[*queue.Queue], _ *client.Client) error {
			s.Close()
			return queue.ErrSharderClosed
		},
		"client": func(_ *queue.Sharder[*queue.Queue], c *client.Client) error {
			_ = c.Close()
			return client.ErrClosed
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				c := zs.Client(t)
				s := shard(t, recipes.On(c))
				over := make(chan error, 1)
				go func() {
					over <- s.Run(rig.Within(t), func(ctx context.Context, _ *queue.Queue) error {
						<-ctx.Done()
						return nil
					})
				}()
				time.Sleep(11 * time.Second)
				if len(zs.Ephemerals()) == 0 || len(zs.Watches()) == 0 {
					t.Error("neither a latch nor a watch")
				}
				want := end(s, c)
				if err := <-over; !errors.Is(err, want) || !errors.Is(s.Err(), want) {
					t.Errorf("run: %v, and %v", err, s.Err())
				}
				rig.NoWatches(t, zs)
				if left := zs.Ephemerals(); len(left) != 0 {
					t.Errorf("left: %v", left)
				}
				s.Close()
				s.Close()
			})
		})
	}
}

// Whatever fails, one check should add one queue to a long one, and nothing else should
// remain.
func TestSharderAtEveryStep(t *testing.T) {
	t.Parallel()
	before := func(e *steps.Env) {
		q := queue.New(recipes.On(e.Other), "/q/queue-a", queue.WithClaims("/q-claims/queue-a"))
		fill(e.T, q, 4)
	}
	steps.Each(t, before, func(e *steps.Env) {
		s, err := queue.NewSharder(e.Ctx, e.Conn, "/q", "/leader", queue.New, queue.WithShardThreshold(4))
		if err != nil {
			if !e.Canceled() {
				e.Errorf("begin: %v", err)
			}
			nothingLeft(e, "/none")
			return
		}
		time.Sleep(45 * time.Second) // one check
		queues := len(e.Server.Children("/q"))
		if queues == 1 && e.Fault != steps.None { // the check failed, or the sharder did not lead
			time.Sleep(30 * time.Second)
			queues = len(e.Server.Children("/q"))
		}
		if queues != 2 || len(s.Paths()) != 2 || s.Err() != nil {
			e.Errorf("%d queues, known are %v, %v", queues, s.Paths(), s.Err())
		}
		s.Close()
		nothingLeft(e, "/none")
	})
}

// The first sharder of a path should create one queue, whatever fails.
func TestFirstShardAtEveryStep(t *testing.T) {
	t.Parallel()
	steps.Each(t, nil, func(e *steps.Env) {
		s, err := queue.NewSharder(e.Ctx, e.Conn, "/q", "/leader", queue.New)
		if err != nil && !e.Canceled() {
			e.Errorf("begin: %v", err)
		}
		time.Sleep(10 * time.Second)
		queues := fmt.Sprint(rig.Children(e.Server, "/q"))
		if err == nil {
			if n := len(s.Paths()); n != 1 || len(e.Server.Children("/q")) != 1 {
				e.Errorf("%d known of %s", n, queues)
			}
			s.Close()
		} else if len(rig.Children(e.Server, "/q")) > 1 {
			e.Errorf("queues %s", queues)
		}
		nothingLeft(e, "/none")
	})
}
