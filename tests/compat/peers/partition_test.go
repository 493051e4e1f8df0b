package peers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/partition"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/tools"
)

// board records which member works on which item, and fails the test if two work on one.
type board struct {
	t *testing.T

	mu      sync.Mutex
	by      map[string]string
	changed chan struct{} // closed and replaced at each change
}

func newBoard(t *testing.T) *board {
	return &board{t: t, by: map[string]string{}, changed: make(chan struct{})}
}

func (b *board) got(id string, items []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, item := range items {
		if other := b.by[item]; other != "" {
			b.t.Errorf("%s and %s work on %s", other, id, item)
		}
		b.by[item] = id
	}
	b.tell()
}

func (b *board) drop(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for item, by := range b.by {
		if by == id {
			delete(b.by, item)
		}
	}
	b.tell()
}

// tell wakes the waiting goroutines; the caller has locked mu.
func (b *board) tell() {
	close(b.changed)
	b.changed = make(chan struct{})
}

var items = []string{"s1", "s2", "s3", "s4", "s5", "s6"}

// await waits until the members have the items that want names.
func (b *board) await(ctx context.Context, want string) {
	b.t.Helper()
	for {
		b.mu.Lock()
		got, changed := "", b.changed
		for _, item := range items {
			got += b.by[item]
		}
		b.mu.Unlock()
		if got == want {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			b.t.Fatalf("shares %s, not %s", got, want)
		}
	}
}

// quiet is short. On a slow machine the shares arrive later, but they should still be
// right.
const quiet = time.Second

// slowly is how long a member keeps the first share that it must give up. In the meantime
// the others should wait for its locks; if the locks didn't exclude them, they would work
// on the share.
const slowly = 3 * time.Second

// goMember runs a member in Go until leave is called.
func (b *board) goMember(ctx context.Context, conn recipes.Conn, id string) (leave func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		first := slowly
		err := partition.New(conn, "/shards", id, items, partition.WithQuietTime(quiet)).Run(ctx, func(ctx context.Context, share partition.Share) error {
			b.got(id, share.Items)
			<-ctx.Done()
			<-time.After(first)
			first = 0
			b.drop(id)
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			b.t.Errorf("%s: %v", id, err)
		}
	}()
	return func() { cancel(); <-done }
}

// pyMember runs a member in Python until leave or kill is called.
func (b *board) pyMember(ctx context.Context, zs *zktest.Server, python, id string) (leave, kill func()) {
	command := append([]string{python, "-B", "workers/partition.py", zs.Addrs()[0], "/shards", id, "1"}, items...)
	w := start(ctx, b.t, command...)
	session := strings.Fields(w.ask(""))
	number := must.Get(strconv.ParseInt(session[len(session)-1], 10, 64))(b.t)
	over := make(chan struct{})
	go func() {
		defer close(over)
		first := slowly
		for line, ok := w.hear(); ok; line, ok = w.hear() {
			if share, got := strings.CutPrefix(line, "got"); got {
				b.got(id, strings.Fields(share))
			} else {
				<-time.After(first)
				first = 0
				b.drop(id)
			}
			w.say("ok")
		}
	}()
	leave = func() { w.say("leave"); <-over }
	kill = func() {
		b.drop(id) // it may hold the item until its session ends
		w.kill()
		<-over
		zs.ExpireSession(number)
	}
	b.t.Cleanup(w.kill)
	return leave, kill
}

// TestPartition makes members in Go and in Python join, leave and die.
func TestPartition(t *testing.T) {
	t.Parallel()
	found := tools.Find(t)
	ctx := bounded(t)
	zs := zktest.Run(t)
	b := newBoard(t)
	leaveA := b.goMember(ctx, recipes.On(zs.Client(t)), "a")
	b.await(ctx, "aaaaaa")
	_, kill := b.pyMember(ctx, zs, found.Python, "b")
	b.await(ctx, "ababab")
	leaveC := b.goMember(ctx, recipes.On(zs.Client(t)), "c")
	b.await(ctx, "abcabc")
	kill()
	b.await(ctx, "acacac")
	leaveB, _ := b.pyMember(ctx, zs, found.Python, "b")
	b.await(ctx, "abcabc")
	leaveA()
	b.await(ctx, "bcbcbc")
	leaveC()
	b.await(ctx, "bbbbbb")
	leaveB()
	b.await(ctx, "")
}
