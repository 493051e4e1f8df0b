package recipes_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/barrier"
	"github.com/zkgo/zkgo/recipes/counter"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/recipes/naming"
	"github.com/zkgo/zkgo/recipes/node"
	"github.com/zkgo/zkgo/recipes/queue"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Session should wait for the next session if one begins and is lost while it waits.
func TestSessionIsLostBeforeItsFirstReply(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := zs.Client(t)
		accept := zs.RefuseConnections()
		zs.ExpireSession(c.Session().ID)
		time.Sleep(2 * client.DefaultSessionTimeout)
		if id := c.Session().ID; id != 0 {
			t.Fatalf("the client still has session %#x", id)
		}
		done := make(chan error, 1)
		go func() {
			done <- recipe.InSession(ctx, recipes.On(c), func(s recipes.Session) error {
				_, err := s.Create(ctx, "/a", nil, recipes.Persistent, nil)
				return err
			})
		}()
		synctest.Wait()
		slow := zs.DelayNext(zktest.Match{}, time.Hour)
		accept()
		slow.Wait()
		zs.ExpireSession(c.Session().ID)
		must.Do(t, <-done)
		if !zs.Exists("/a") {
			t.Error("/a is missing")
		}
	})
}

func TestNoOtherSession(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := zs.Client(t, client.WithoutNewSession())
		s, err := recipes.On(c).Session(ctx)
		if err != nil || s.ID() != c.Session().ID {
			t.Fatalf("%v, %v", s, err)
		}
		zs.ExpireSession(s.ID())
		time.Sleep(time.Minute)
		if _, err := recipes.On(c).Session(ctx); !errors.Is(err, client.ErrSessionExpired) {
			t.Errorf("after the last session: %v", err)
		}
		c = zs.Client(t)
		must.Do(t, c.Close())
		if _, err := recipes.On(c).Session(ctx); !errors.Is(err, client.ErrClosed) {
			t.Errorf("of a closed client: %v", err)
		}
	})
}

// chrooted connects a client with a chroot that doesn't exist.
func chrooted(t *testing.T, zs *zktest.Server) *client.Client {
	t.Helper()
	dial := func(context.Context, string, string) (net.Conn, error) { return zs.Dial() }
	c := must.Get(client.Connect(rig.Within(t), "server/shop/eu", client.WithDialer(dial)))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A recipe should create the chroot if it is missing.
func TestMissingChroot(t *testing.T) {
	for name, use := range map[string]func(ctx context.Context, conn recipes.Conn) error{
		"Barrier": func(ctx context.Context, conn recipes.Conn) error { return barrier.New(conn, "/x").Close(ctx) },
		"Node": func(ctx context.Context, conn recipes.Conn) error {
			n := node.Keep(conn, "/x", nil)
			defer n.Close()
			return n.Wait(ctx)
		},
		"SharedValue": func(ctx context.Context, conn recipes.Conn) error {
			_, err := counter.NewSharedValue(conn, "/x", nil).Get(ctx)
			return err
		},
		"Long": func(ctx context.Context, conn recipes.Conn) error {
			r, err := counter.NewLong(conn, "/x").Add(ctx, 1)
			if err == nil && !r.Succeeded {
				err = errors.New("the number was not written")
			}
			return err
		},
		"IDs": func(ctx context.Context, conn recipes.Conn) error {
			_, err := naming.NewIDs(conn, "/x", 1).Next(ctx)
			return err
		},
		"Queue": func(ctx context.Context, conn recipes.Conn) error {
			return queue.New(conn, "/x").Put(ctx, []byte("1"))
		},
		"Mutex": func(ctx context.Context, conn recipes.Conn) error {
			l, err := lock.NewMutex(conn, "/").Acquire(ctx)
			if err == nil {
				err = l.Release(ctx)
			}
			return err
		},
		"Simple": func(ctx context.Context, conn recipes.Conn) error {
			l, err := lock.NewSimple(conn, "/x").Acquire(ctx)
			if err == nil {
				err = l.Release(ctx)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				must.Do(t, use(rig.Within(t), recipes.On(chrooted(t, zs))))
				if !zs.Exists("/shop/eu") {
					t.Error("the chroot is missing")
				}
			})
		})
	}
}

// A client without permission to create znodes below the root should still be able to use
// an existing directory.
func TestEnsureContainersNeedsNoPermissionOnTheRoot(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.FailAll(zktest.Match{Op: proto.OpCreate, Path: "/"}, proto.ErrNoAuth)
		s := must.Get(recipes.On(zs.Client(t)).Session(rig.Within(t)))(t)
		must.Do(t, recipes.EnsureContainers(rig.Within(t), s, "/"))
	})
}

// If an overloaded server refuses a delete, the znode should still be deleted.
func TestThrottledDelete(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		conn := recipes.On(zs.Client(t))
		n := node.Keep(conn, "/n", nil)
		must.Do(t, n.Wait(ctx))
		zs.FailNext(zktest.Match{Op: proto.OpDelete, Path: "/n"}, proto.ErrThrottledOp)
		n.Close()
		if zs.Exists("/n") {
			t.Error("the closed Node's znode remains")
		}
		q := queue.New(conn, "/q")
		must.Do(t, q.Put(ctx, []byte("1")))
		item := must.Get(q.Take(ctx))(t)
		zs.FailNext(zktest.Match{Op: proto.OpDelete}, proto.ErrThrottledOp)
		must.Do(t, item.Return(ctx))
		item = must.Get(q.TryTake(ctx))(t)
		zs.FailNext(zktest.Match{Op: proto.OpMulti}, proto.ErrThrottledOp)
		must.Do(t, item.Ack(ctx))
	})
}

// If the outcome of a write is unknown and the server refuses the retry, the outcome should
// stay unknown.
func TestRefusedAfterAnUnknownOutcome(t *testing.T) {
	for name, tc := range map[string]struct {
		op    proto.Op
		later proto.Code
		write func(ctx context.Context, conn recipes.Conn) error
	}{
		"barrier close": {proto.OpCreate2, proto.ErrNoAuth, func(ctx context.Context, conn recipes.Conn) error {
			return barrier.New(conn, "/a").Close(ctx)
		}},
		"barrier open": {proto.OpDelete, proto.ErrNoAuth, func(ctx context.Context, conn recipes.Conn) error {
			return barrier.New(conn, "/there").Open(ctx)
		}},
		"count down": {proto.OpCreate2, proto.ErrNoAuth, func(ctx context.Context, conn recipes.Conn) error {
			return barrier.NewCountDownLatch(conn, "/there", 1).CountDown(ctx)
		}},
		"reserve": {proto.OpCreate2, proto.ErrNoAuth, func(ctx context.Context, conn recipes.Conn) error {
			return naming.New(conn, "/").Reserve(ctx, "a", nil)
		}},
		"revoke": {proto.OpSetData, proto.ErrNoNode, func(ctx context.Context, conn recipes.Conn) error {
			return lock.Revoke(ctx, conn, "/there")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rig.Run(t, func(t *testing.T, zs *zktest.Server) {
				zs.Set("/there", "")
				zs.Set("/reserved", "")
				zs.LoseReply(zktest.Match{Op: tc.op})
				defer zs.FailAll(zktest.Match{Op: tc.op}, tc.later).Cancel()
				err := tc.write(rig.Within(t), recipes.On(zs.Client(t)))
				if !errors.Is(err, client.ErrUnknownOutcome) || !errors.Is(err, tc.later) {
					t.Errorf("done, then %v: %v", tc.later, err)
				}
			})
		})
	}
}
