package lock_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake runs a test with a server in fake time.
func fake(t *testing.T, test func(t *testing.T, zs *zktest.Server)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, zktest.Run(t)) })
}

// on returns a client's connection, and the client.
func on(t *testing.T, zs *zktest.Server) (recipes.Conn, *client.Client) {
	c := zs.Client(t)
	return recipes.On(c), c
}

// within returns a context for what has to work.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// get returns a function that passes a result on if there is no error.
func get(t *testing.T) func(l *lock.Lease, err error) *lock.Lease {
	return func(l *lock.Lease, err error) *lock.Lease {
		t.Helper()
		must(t, err)
		return l
	}
}

// noWatches fails if a watch is left at the server.
func noWatches(t *testing.T, zs *zktest.Server) {
	t.Helper()
	synctest.Wait()
	if w := zs.Watches(); len(w) != 0 {
		t.Errorf("watches are left: %v", w)
	}
}

// children returns the names below a path, none if there is no such znode.
func children(zs *zktest.Server, path string) []string {
	if !zs.Exists(path) {
		return nil
	}
	names := zs.Children(path)
	slices.Sort(names)
	return names
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// severed returns a client's connection, and what cuts it off from the server
// until resume is called.
func severed(t *testing.T, zs *zktest.Server) (conn recipes.Conn, cut func() (resume func())) {
	var off atomic.Bool
	c := zs.Client(t, client.WithDialer(func(context.Context, string, string) (net.Conn, error) {
		if off.Load() {
			return nil, errors.New("cut off")
		}
		return zs.Dial()
	}))
	return recipes.On(c), func() func() {
		off.Store(true)
		resume := zs.HangConnection(c.Session().ID)
		return func() {
			off.Store(false)
			resume()
		}
	}
}
