package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/queue"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func on(t *testing.T, zs *zktest.Server) recipes.Conn { return recipes.On(zs.Client(t)) }

// taker is the interface of all queues with claims.
type taker interface {
	Take(ctx context.Context) (*queue.Item, error)
	TryTake(ctx context.Context) (*queue.Item, error)
}

// drain claims and acknowledges all available items, and returns their values.
func drain(t *testing.T, q taker) string {
	t.Helper()
	var all []string
	for {
		item, err := q.TryTake(rig.Within(t))
		if errors.Is(err, queue.ErrEmpty) {
			return strings.Join(all, " ")
		}
		must.Do(t, err)
		for _, v := range item.Values {
			all = append(all, string(v))
		}
		must.Do(t, item.Ack(rig.Within(t)))
	}
}

func TestOrderAndLayout(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn := on(t, zs)
		q := queue.New(conn, "/q/fifo")
		for _, v := range []string{"a", "b", "c"} {
			must.Do(t, q.Put(ctx, []byte(v), []byte(v+v)))
		}
		// Java: writeInt(0x00010001), then 1, the length and the bytes of each value, then
		// 2.
		if got := zs.Get("/q/fifo/queue-0000000000"); got != "\x00\x01\x00\x01\x01\x00\x00\x00\x01a\x01\x00\x00\x00\x02aa\x02" {
			t.Errorf("data %q", got)
		}
		if got := drain(t, q); got != "a aa b bb c cc" {
			t.Errorf("first in, first out: %s", got)
		}
		p := queue.NewPriority(conn, "/q/prio")
		for v, n := range map[string]int32{"low": 7, "high": -7, "middle": 0} {
			must.Do(t, p.Put(ctx, n, []byte(v)))
		}
		names := zs.Children("/q/prio")
		slices.Sort(names)
		if !strings.HasPrefix(names[0], "queue-0FFFFFFF9") || !strings.HasPrefix(names[2], "queue-100000007") {
			t.Errorf("names %v", names)
		}
		if got := drain(t, p); got != "high middle low" {
			t.Errorf("by priority: %s", got)
		}
		rig.NoWatches(t, zs)
		if len(zs.Ephemerals()) != 0 {
			t.Errorf("claims are left: %v", zs.Ephemerals())
		}
	})
}

func TestDelay(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		q := queue.NewDelay(on(t, zs), "/q")
		began := time.Now()
		must.Do(t, q.Put(ctx, began.Add(2*time.Minute), []byte("late")))
		must.Do(t, q.Put(ctx, began.Add(time.Minute), []byte("early")))
		if _, err := q.TryTake(ctx); !errors.Is(err, queue.ErrEmpty) {
			t.Errorf("before its time: %v", err)
		}
		for i, want := range []string{"early", "late"} {
			item := must.Get(q.Take(ctx))(t)
			if at := time.Since(began).Round(time.Second); string(item.Values[0]) != want || at != time.Duration(i+1)*time.Minute {
				t.Errorf("%s after %v", item.Values[0], at)
			}
			must.Do(t, item.Ack(ctx))
		}
		rig.NoWatches(t, zs)
	})
}

func TestIDs(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		q := queue.NewID(on(t, zs), "/q")
		for _, id := range []string{"z", "a/b", "z", "c"} {
			must.Do(t, q.Put(ctx, id, []byte(id)))
		}
		if !zs.Exists("/q/queue-|a_b|0000000001") {
			t.Errorf("names %v", zs.Children("/q"))
		}
		if n, err := q.Remove(ctx, "z"); n != 2 || err != nil {
			t.Errorf("%d removed, %v", n, err)
		}
		if got := drain(t, q); got != "a/b c" {
			t.Errorf("left: %s", got)
		}
		rig.NoWatches(t, zs)
	})
}

// If a consumer doesn't finish an item, the item should return to the queue.
func TestLostConsumer(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := zs.Client(t)
		a, b := queue.New(recipes.On(c), "/q"), queue.New(on(t, zs), "/q")
		must.Do(t, a.Put(ctx, []byte("x")))
		item := must.Get(a.Take(ctx))(t)
		got := make(chan *queue.Item)
		go func() {
			item, err := b.Take(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- item
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Fatal("two consumers have the item")
		default:
		}
		zs.ExpireSession(c.Session().ID)
		second := <-got
		<-item.Done()
		if err := item.Ack(ctx); !errors.Is(err, queue.ErrLost) || !zs.Exists(second.Path()) {
			t.Errorf("ack of a lost item: %v", err)
		}
		must.Do(t, second.Return(ctx))
		third := must.Get(a.Take(ctx))(t)
		must.Do(t, third.Requeue(ctx))
		last := must.Get(b.Take(ctx))(t)
		if last.Path() != "/q/queue-0000000001" || string(last.Values[0]) != "x" {
			t.Errorf("requeued: %s %q", last.Path(), last.Values)
		}
		must.Do(t, last.Ack(ctx))
		if n, err := a.Len(ctx); n != 0 || err != nil {
			t.Errorf("%d left, %v", n, err)
		}
		rig.NoWatches(t, zs)
	})
}

func TestConsumersShare(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, stop := context.WithCancel(rig.Within(t))
		const items = 30
		seen := make(chan string, items)
		for range 3 {
			q := queue.New(on(t, zs), "/q")
			go func() {
				for item, err := range q.Items(ctx) {
					if err != nil {
						t.Error(err)
						return
					}
					time.Sleep(time.Second)
					seen <- string(item.Values[0])
					if err := item.Ack(ctx); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		q := queue.New(on(t, zs), "/q", queue.WithMaxItems(5))
		most := 0
		for i := range items {
			must.Do(t, q.Put(ctx, []byte{byte(i)}))
			most = max(most, len(zs.Children("/q")))
		}
		all := map[string]bool{}
		for range items {
			v := <-seen
			if all[v] {
				t.Errorf("%q twice", v)
			}
			all[v] = true
		}
		if most > 5 {
			t.Errorf("%d items in a queue for 5", most)
		}
		time.Sleep(time.Second)
		stop()
		time.Sleep(time.Second)
		rig.NoWatches(t, zs)
	})
}

func TestForeignData(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		for _, data := range []string{"", "x", "\x00\x01\x00\x01", "\x00\x01\x00\x01\x01\xff\xff\xff\xffa\x02", "\x00\x01\x00\x01\x01\x00\x00\x00\x01a"} {
			zs.Set("/q/queue-0000000000", data)
			item := must.Get(queue.New(on(t, zs), "/q").Take(rig.Within(t)))(t)
			if item.Values != nil || string(item.Data) != data {
				t.Errorf("%q read as %q", data, item.Values)
			}
			must.Do(t, item.Ack(rig.Within(t)))
		}
	})
}

func TestSimple(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		q := queue.NewSimple(on(t, zs), "/d/q")
		if _, err := q.Poll(ctx); !errors.Is(err, queue.ErrEmpty) {
			t.Errorf("poll: %v", err)
		}
		got := make(chan string)
		go func() {
			data, err := q.Take(ctx)
			if err != nil {
				t.Error(err)
			}
			got <- string(data)
		}()
		synctest.Wait()
		other := queue.NewSimple(on(t, zs), "/d/q")
		must.Do(t, other.Offer(ctx, []byte("a")))
		if v := <-got; v != "a" {
			t.Errorf("took %q", v)
		}
		must.Do(t, other.Offer(ctx, []byte("b")))
		if zs.Get("/d/q/qn-0000000001") != "b" {
			t.Errorf("layout:\n%s", zs.Dump())
		}
		for _, f := range []func(context.Context) ([]byte, error){q.Peek, q.Poll} {
			if data, err := f(ctx); err != nil || string(data) != "b" {
				t.Errorf("%q %v", data, err)
			}
		}
		rig.NoWatches(t, zs)
	})
}

// outrun is a connection that loses its first claim before the server receives it. Another
// consumer uses the same session and claims the item in the meantime.
type outrun struct {
	recipes.Conn
	meanwhile func()
}

func (o *outrun) Session(ctx context.Context) (recipes.Session, error) {
	s, err := o.Conn.Session(ctx)
	return outrunSession{s, o}, err
}

type outrunSession struct {
	recipes.Session
	o *outrun
}

func (s outrunSession) Create(ctx context.Context, path string, data []byte, mode recipes.Mode, acl []client.ACL) (string, error) {
	if do := s.o.meanwhile; do != nil && mode == recipes.Ephemeral {
		s.o.meanwhile = nil
		do()
		return "", errors.Join(client.ErrConnectionLoss, client.ErrUnknownOutcome)
	}
	return s.Session.Create(ctx, path, data, mode, acl)
}

// Two consumers in one session should not mistake each other's claims for their own.
func TestClaimOfAnotherInTheSameSession(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn := recipes.On(zs.Client(t))
		must.Do(t, queue.New(conn, "/q").Put(ctx, []byte("x")))
		var other *queue.Item
		slow := &outrun{Conn: conn}
		slow.meanwhile = func() { other = must.Get(queue.New(conn, "/q").TryTake(ctx))(t) }
		if item, err := queue.New(slow, "/q").TryTake(ctx); !errors.Is(err, queue.ErrEmpty) {
			t.Errorf("two consumers have one item: %v, %v", item, err)
		}
		must.Do(t, other.Ack(ctx))
	})
}

// If a consumer gives up and doesn't know whether it has claimed an item, it should not
// delete another consumer's claim in the same session.
func TestAbandonedClaimIsNotAnothers(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx, cancel := context.WithCancel(rig.Within(t))
		conn := recipes.On(zs.Client(t))
		must.Do(t, queue.New(conn, "/q").Put(ctx, []byte("x")))
		var other *queue.Item
		slow := &outrun{Conn: conn}
		slow.meanwhile = func() {
			other = must.Get(queue.New(conn, "/q").TryTake(rig.Within(t)))(t)
			cancel()
		}
		if item, err := queue.New(slow, "/q").TryTake(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("given up: %v, %v", item, err)
		}
		time.Sleep(time.Minute)
		if n := len(zs.Children("/q-claims")); n != 1 {
			t.Errorf("%d claims", n)
		}
		must.Do(t, other.Ack(rig.Within(t)))
	})
}

// An item should count as lost when its claim is gone, even if its session lives.
func TestClaimThatHasGone(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		q := queue.New(recipes.On(zs.Client(t)), "/q")
		must.Do(t, q.Put(ctx, []byte("x")))
		item := must.Get(q.Take(ctx))(t)
		zs.Delete("/q-claims/" + zs.Children("/q-claims")[0])
		if err := item.Ack(ctx); !errors.Is(err, queue.ErrLost) || len(zs.Children("/q")) != 1 {
			t.Errorf("ack: %v, items %v", err, zs.Children("/q"))
		}
	})
}
