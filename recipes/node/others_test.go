package node_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/node"
	"github.com/zkgo/zkgo/server/zktest"
	"github.com/zkgo/zkgo/tests/kit/must"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// A Node should never delete another client's znode, in whatever state it is closed.
func TestCloseLeavesAnothersZnode(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		ca, cb, cc := zs.Client(t), zs.Client(t), zs.Client(t)
		a := node.Keep(recipes.On(ca), "/n", []byte("a"))
		must.Do(t, a.Wait(ctx))
		b := node.Keep(recipes.On(cb), "/n", []byte("b"), node.WithTakeover())
		must.Do(t, b.Wait(ctx))
		c := node.Keep(recipes.On(cc), "/n", []byte("c")) // waits
		synctest.Wait()
		born := zs.Stat("/n").Czxid
		a.Close() // has had the znode in this session
		c.Close() // never had it
		time.Sleep(time.Minute)
		kept(t, zs, cb, "/n", "b")
		if zs.Stat("/n").Czxid != born {
			t.Error("it was deleted and recreated")
		}
		synctest.Wait()
		if w := zs.Watches(); len(w) != 1 {
			t.Errorf("watches: %v", w)
		}
		b.Close()
		rig.NoWatches(t, zs)
	})
}

// A Node should not write into a znode that another session has created since the Node read
// its own.
func TestWriteThatArrivesAfterATakeover(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		ca, cb := zs.Client(t), zs.Client(t)
		a := node.Keep(recipes.On(ca), "/n", []byte("a"))
		defer a.Close()
		must.Do(t, a.Wait(ctx))
		a.SetData([]byte("a2"))
		must.Do(t, a.Wait(ctx))
		late := zs.DelayNext(zktest.Match{Op: proto.OpSetData, Session: ca.Session().ID}, time.Second)
		a.SetData([]byte("a3"))
		late.Wait()
		b := node.Keep(recipes.On(cb), "/n", []byte("b"), node.WithTakeover())
		defer b.Close()
		must.Do(t, b.Wait(ctx))
		time.Sleep(time.Minute)
		kept(t, zs, cb, "/n", "b")
	})
}

// A Node should not delete an existing persistent znode before it has written it.
func TestCloseBeforeTheFirstWrite(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		zs.Set("/p", "another's")
		zs.DelayNext(zktest.Match{Op: proto.OpExists, Path: "/p"}, time.Second)
		n := node.Keep(recipes.On(zs.Client(t)), "/p", []byte("n"), node.WithMode(recipes.Persistent))
		synctest.Wait()
		n.Close()
		if !zs.Exists("/p") || zs.Get("/p") != "another's" {
			t.Error("deleted or written")
		}
	})
}

// Whichever client recreates a persistent znode first, the znode should get this Node's
// data.
func TestPersistentNodeThatAnotherCreates(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		n := node.Keep(recipes.On(zs.Client(t)), "/p", []byte("n"), node.WithMode(recipes.Persistent))
		defer n.Close()
		must.Do(t, n.Wait(ctx))
		zs.DelayNext(zktest.Match{Op: proto.OpCreate, Path: "/p"}, time.Second)
		zs.Delete("/p")
		synctest.Wait()
		zs.Set("/p", "another's")
		time.Sleep(time.Minute)
		must.Do(t, n.Wait(ctx))
		if got := zs.Get("/p"); got != "n" {
			t.Errorf("it holds %q", got)
		}
	})
}

// lagging is a connection to several servers. The server of a later session still
// shows the last state that the first session saw, until it is asked to sync.
type lagging struct {
	recipes.Conn
	mu    sync.Mutex
	first int64
	last  client.Stat
	there bool
	done  bool // synced
}

func (l *lagging) Session(ctx context.Context) (recipes.Session, error) {
	s, err := l.Conn.Session(ctx)
	return laggingSession{s, l}, err
}

type laggingSession struct {
	recipes.Session
	l *lagging
}

func (s laggingSession) ExistsW(ctx context.Context, path string) (client.Stat, bool, recipes.Watch, error) {
	stat, there, w, err := s.Session.ExistsW(ctx, path)
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	switch {
	case err != nil:
	case s.l.first == 0 || s.l.first == s.ID():
		s.l.first, s.l.last, s.l.there = s.ID(), stat, there
	case !s.l.done:
		return s.l.last, s.l.there, w, nil
	}
	return stat, there, w, err
}

func (s laggingSession) Sync(ctx context.Context, path string) error {
	err := s.Session.Sync(ctx, path)
	s.l.mu.Lock()
	defer s.l.mu.Unlock()
	s.l.done = s.l.done || err == nil && s.l.first != 0 && s.ID() != s.l.first
	return err
}

// A waiting Node should get the znode when the session of the first Node ends. The first
// Node should not replace it when a stale server shows its old znode.
func TestOldZnodeOnALaggingServer(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		ca, cb := zs.Client(t), zs.Client(t)
		a := node.Keep(&lagging{Conn: recipes.On(ca)}, "/n", []byte("a"))
		defer a.Close()
		must.Do(t, a.Wait(ctx))
		time.Sleep(time.Second)
		b := node.Keep(recipes.On(cb), "/n", []byte("b"))
		defer b.Close()
		synctest.Wait()
		zs.ExpireSession(ca.Session().ID)
		must.Do(t, b.Wait(ctx))
		time.Sleep(time.Minute)
		kept(t, zs, cb, "/n", "b")
	})
}

// If a Node's session has ended, it should not report that its znode exists, even if no
// server is reachable.
func TestExistsWithoutASession(t *testing.T) {
	rig.Run(t, func(t *testing.T, zs *zktest.Server) {
		ctx := rig.Within(t)
		c := zs.Client(t)
		n := node.Keep(recipes.On(c), "/n", []byte("a"))
		defer n.Close()
		must.Do(t, n.Wait(ctx))
		accept := zs.RefuseConnections()
		zs.ExpireSession(c.Session().ID)
		time.Sleep(5 * time.Minute)
		if n.Exists() {
			t.Error("it exists")
		}
		accept()
		must.Do(t, n.Wait(ctx))
		kept(t, zs, c, "/n", "a")
	})
}
