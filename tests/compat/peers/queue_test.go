package peers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/queue"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/tools"
)

// taker is a queue with claims.
type taker interface {
	Take(ctx context.Context) (*queue.Item, error)
	TryTake(ctx context.Context) (*queue.Item, error)
}

// kind is a kind of queue that Curator has too.
type kind struct {
	open func(conn recipes.Conn, path string) taker
	// put puts an item with the extra argument of the kind.
	put func(ctx context.Context, q taker, item, argument string) error
	// The producer puts items in this order, each with an argument, and the consumer receives them
	// in the order of order.
	items, order string
}

// due returns a time in the past, in milliseconds.
func due(seconds int) int64 {
	return time.Now().Add(time.Duration(seconds-3600) * time.Second).UnixMilli()
}

func kinds() map[string]kind {
	return map[string]kind{
		"queue": {
			open: func(conn recipes.Conn, path string) taker { return queue.New(conn, path) },
			put: func(ctx context.Context, q taker, item, second string) error {
				values := [][]byte{[]byte(item)}
				if second != "" {
					values = append(values, []byte(second))
				}
				return q.(*queue.Queue).Put(ctx, values...)
			},
			items: "a b:b2 c", order: "a b b2 c",
		},
		"priority": {
			open: func(conn recipes.Conn, path string) taker { return queue.NewPriority(conn, path) },
			put: func(ctx context.Context, q taker, item, argument string) error {
				var priority int32
				if _, err := fmt.Sscan(argument, &priority); err != nil {
					return err
				}
				return q.(*queue.Priority).Put(ctx, priority, []byte(item))
			},
			items: "low:70000 high:-5 middle:3 middle2:3", order: "high middle middle2 low",
		},
		"delay": {
			open: func(conn recipes.Conn, path string) taker { return queue.NewDelay(conn, path) },
			put: func(ctx context.Context, q taker, item, argument string) error {
				var ms int64
				if _, err := fmt.Sscan(argument, &ms); err != nil {
					return err
				}
				return q.(*queue.Delay).Put(ctx, time.UnixMilli(ms), []byte(item))
			},
			items: fmt.Sprintf("second:%d third:%d first:%d", due(20), due(30), due(10)), order: "first second third",
		},
		"id": {
			open: func(conn recipes.Conn, path string) taker { return queue.NewID(conn, path) },
			put: func(ctx context.Context, q taker, item, argument string) error {
				return q.(*queue.ID).Put(ctx, argument, []byte(item))
			},
			items: "a:z b:y/1 c:x", order: "a b c",
		},
	}
}

// javaPeer starts Curator's side.
func javaPeer(ctx context.Context, t *testing.T, zs *zktest.Server) *worker {
	t.Helper()
	found := tools.Find(t)
	return start(ctx, t, append(found.Java(t, "workers/Peer.java"), zs.Addrs()[0])...)
}

// TestQueues moves items from Java to Go and back, and makes both consume one queue.
func TestQueues(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	zs := zktest.Run(t)
	java, conn := javaPeer(ctx, t, zs), recipes.On(zs.Client(t))
	for name, k := range kinds() {
		javaToGo(ctx, t, java, k, name, conn)
		goToJava(ctx, t, zs, java, k, name, conn)
	}
	shared(ctx, t, zs, java, conn)
	simple(ctx, t, java, conn)
	removed(ctx, t, java, conn)
}

func javaToGo(ctx context.Context, t *testing.T, java *worker, k kind, name string, conn recipes.Conn) {
	t.Helper()
	path := "/java-to-go/" + name
	java.expect("ok", "put", name, path, k.items)
	var got []string
	for q := k.open(conn, path); ; {
		item, err := q.TryTake(ctx)
		if errors.Is(err, queue.ErrEmpty) {
			break
		}
		must.Do(t, err)
		for _, v := range item.Values {
			got = append(got, string(v))
		}
		must.Do(t, item.Ack(ctx))
	}
	if all := strings.Join(got, " "); all != k.order {
		t.Errorf("%s: Go takes %q of what Java has put, not %q", name, all, k.order)
	}
}

func goToJava(ctx context.Context, t *testing.T, zs *zktest.Server, java *worker, k kind, name string, conn recipes.Conn) {
	t.Helper()
	path := "/go-to-java/" + name
	q := k.open(conn, path)
	for item := range strings.FieldsSeq(k.items) {
		item, argument, _ := strings.Cut(item, ":")
		must.Do(t, k.put(ctx, q, item, argument))
	}
	java.expect("ok", "consume", name, path)
	for item := range strings.FieldsSeq(k.order) {
		java.expect(item, "begun", path)
		java.expect("ok", "allow", path, "1")
	}
	finish(zs, java, path)
}

// finish ends a consumer when all items are gone. If we ended it earlier, the consumer
// would put back an item that it is about to delete.
func finish(zs *zktest.Server, java *worker, path string) {
	zs.Wait("no items in "+path, func() bool { return len(zs.Children(path)) == 0 })
	java.expect("ok", "stop", path)
}

// shared makes both consume one queue, each while the other works on an item.
func shared(ctx context.Context, t *testing.T, zs *zktest.Server, java *worker, conn recipes.Conn) {
	t.Helper()
	q := queue.New(conn, "/shared")
	for _, item := range []string{"1", "2", "3"} {
		must.Do(t, q.Put(ctx, []byte(item)))
	}
	first := must.Get(q.Take(ctx))(t)
	java.expect("ok", "consume", "queue", "/shared")
	java.expect("2", "begun", "/shared") // Go has the first item
	third, err := q.Take(ctx)            // Java has the second item
	must.Do(t, err)
	if a, b := string(first.Values[0]), string(third.Values[0]); a != "1" || b != "3" {
		t.Errorf("Go takes %s and %s", a, b)
	}
	if _, err := q.TryTake(ctx); !errors.Is(err, queue.ErrEmpty) {
		t.Errorf("nothing is free: %v", err)
	}
	must.Do(t, first.Ack(ctx))
	must.Do(t, third.Return(ctx))
	java.expect("ok", "allow", "/shared", "2")
	// Curator checks for returned items when the items change.
	must.Do(t, q.Put(ctx, []byte("4")))
	java.expect("3", "begun", "/shared")
	java.expect("4", "begun", "/shared")
	java.expect("ok", "allow", "/shared", "9")
	finish(zs, java, "/shared")
}

func simple(ctx context.Context, t *testing.T, java *worker, conn recipes.Conn) {
	t.Helper()
	q := queue.NewSimple(conn, "/simple")
	java.expect("ok", "put", "simple", "/simple", "j")
	if data, err := q.Take(ctx); err != nil || string(data) != "j" {
		t.Errorf("Go takes %q, %v", data, err)
	}
	must.Do(t, q.Offer(ctx, []byte("g")))
	java.expect("g", "take", "/simple")
}

// removed makes each side remove, by its id, an item that the other has put.
func removed(ctx context.Context, t *testing.T, java *worker, conn recipes.Conn) {
	t.Helper()
	q := queue.NewID(conn, "/ids")
	java.expect("ok", "put", "id", "/ids", "a:j b:k c:j")
	if n, err := q.Remove(ctx, "j"); n != 2 || err != nil {
		t.Errorf("Go removes %d of Java's, %v", n, err)
	}
	must.Do(t, q.Put(ctx, "g/1", []byte("d")))
	java.expect("1", "remove", "/ids", "g_1") // this is how Curator puts and removes it
	java.expect("1", "remove", "/ids", "k")
}
