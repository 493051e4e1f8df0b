package client

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/gozk"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
)

// silent is a logger for go-zookeeper that discards its output.
type silent struct{}

func (silent) Printf(string, ...any) {}

// connectGozk opens a *zk.Conn over a wire, as a recipes.Conn.
func connectGozk(t testing.TB, timeout time.Duration, addrs ...string) (recipes.Conn, *wire) {
	t.Helper()
	w := new(wire)
	d := gozk.NewDialer(func(network, addr string, within time.Duration) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		return w.dial(ctx, network, addr)
	})
	c, events, err := zk.Connect(addrs, timeout, zk.WithLogger(silent{}), zk.WithLogInfo(false), zk.WithDialer(d.Dial))
	must.Do(t, err)
	t.Cleanup(c.Close)
	return gozk.On(c, events, d), w
}

// say writes into a lock's znode until a server replies; the write may be applied twice.
func say(ctx context.Context, lease *lock.Lease) error {
	for {
		err := lease.SetData(ctx, []byte("still mine"))
		if !recipes.Again(ctx, err) && !errors.Is(err, client.ErrUnknownOutcome) {
			return err
		}
	}
}

// gozkLocks makes go-zookeeper and our own client acquire one lock in turn, while
// connections break and sessions end.
func gozkLocks(t *testing.T, addr string) {
	ctx := bounded(t)
	host, root, _ := strings.Cut(addr, "/")
	path := "/" + root
	if root != "" {
		path += "/"
	}
	path += "gozk"
	ours, _ := connect(t, host)
	mine := lock.NewMutex(recipes.On(ours), path)

	steady, cuts := connectGozk(t, timeout, host)
	theirs := lock.NewMutex(steady, path)
	lease := must.Get(theirs.Acquire(ctx))(t)
	if _, err := mine.TryAcquire(ctx); !errors.Is(err, lock.ErrNotAcquired) {
		t.Errorf("both have it: %v", err)
	}
	cuts.cut()
	// The session continues, and so does the lock; the request succeeds on the next connection.
	must.Do(t, say(ctx, lease))
	if err := lease.Err(); err != nil {
		t.Errorf("lost by a broken connection: %v", err)
	}
	must.Do(t, lease.Release(ctx))
	before := lease.Token()
	next := must.Get(mine.Acquire(ctx))(t)
	if next.Token() <= before {
		t.Errorf("token %d after %d", next.Token(), before)
	}
	must.Do(t, next.Release(ctx))

	gozkExpiry(ctx, t, host, path, mine)
}

// gozkExpiry disconnects a holder until its session expires. The holder should notice before
// another client has the lock, and be able to acquire it again later.
func gozkExpiry(ctx context.Context, t *testing.T, host, path string, mine *lock.Mutex) {
	t.Helper()
	conn, line := connectGozk(t, short, host)
	theirs := lock.NewMutex(conn, path)
	lease := must.Get(theirs.Acquire(ctx))(t)
	first := must.Get(conn.Session(ctx))(t)
	line.refuse(true)
	line.deafen()
	line.cut()
	next := must.Get(mine.Acquire(ctx))(t)
	if err := lease.Err(); !errors.Is(err, lock.ErrLost) {
		t.Errorf("another has the lock, and its lease says %v", err)
	}
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	line.refuse(false)
	select {
	case <-lease.Done():
	case <-ctx.Done():
		t.Fatal("Done is not closed")
	}
	if err := lease.Release(ctx); !errors.Is(err, lock.ErrLost) {
		t.Errorf("release: %v", err)
	}
	must.Do(t, next.Release(ctx))
	lease = must.Get(theirs.Acquire(ctx))(t)
	if second, err := conn.Session(ctx); err != nil || second.ID() == first.ID() {
		t.Errorf("the session has not ended: %v", err)
	}
	must.Do(t, lease.Release(ctx))
}

// TestGozkInAnEnsemble keeps a lock while the leader is killed.
func TestGozkInAnEnsemble(t *testing.T) {
	t.Parallel()
	ctx := bounded(t)
	cl := zktest.RunCluster(t, 3)
	conn, _ := connectGozk(t, timeout, cl.Addrs()...)
	lease := must.Get(lock.NewMutex(conn, "/gozk").Acquire(ctx))(t)
	other, _ := connect(t, strings.Join(cl.Addrs(), ","))
	got := make(chan error, 1)
	go func() {
		next, err := lock.NewMutex(recipes.On(other), "/gozk").Acquire(ctx)
		if err == nil && next.Token() <= lease.Token() {
			err = errors.New("the token does not grow")
		}
		if err == nil {
			err = next.Release(ctx)
		}
		got <- err
	}()
	dead := cl.Leader().ID()
	cl.Kill(dead)
	cl.Leader() // wait for another one
	must.Do(t, say(ctx, lease))
	if err := lease.Err(); err != nil {
		t.Errorf("lost by the leader's death: %v", err)
	}
	must.Do(t, lease.Release(ctx))
	must.Do(t, <-got)
	cl.Restart(dead)
}
