// Package rig has the helpers for the tests and examples of the recipes: a server
// in fake time with common assertions, and a server in this process for examples.
//
// It imports client, server and server/zktest, and only tests import it.
package rig

import (
	"context"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

// Run runs a test with a server in fake time, in parallel with other tests.
func Run(t *testing.T, test func(t *testing.T, zs *zktest.Server)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, zktest.Run(t)) })
}

// Within returns a context for what must succeed eventually: an hour of fake
// time.
func Within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// NoWatches fails the test if a watch is left on the server when all goroutines
// are idle.
func NoWatches(t *testing.T, zs *zktest.Server) {
	t.Helper()
	synctest.Wait()
	if w := zs.Watches(); len(w) != 0 {
		t.Errorf("watches are left: %v", w)
	}
}

// Children returns the names of a znode's children in order, or none if it does
// not exist.
func Children(zs *zktest.Server, path string) []string {
	if !zs.Exists(path) {
		return nil
	}
	names := zs.Children(path)
	slices.Sort(names)
	return names
}

// Closed reports whether a channel is closed.
func Closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// Embedded runs a server in this process, in real time, and returns a connected client, for
// examples: a program would call client.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181"). It panics on
// error, since an example cannot report one.
func Embedded() (c *client.Client, stop func()) {
	srv, err := server.Start(context.Background(), server.Config{Memory: true, Znodes: server.Znodes{ExtendedTypes: true}})
	if err != nil {
		panic(err)
	}
	<-srv.Ready()
	dial := client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return srv.Dial() })
	c, err = client.Connect(context.Background(), "embedded", dial)
	if err != nil {
		panic(err)
	}
	return c, func() {
		_ = c.Close()
		_ = srv.Close()
	}
}
