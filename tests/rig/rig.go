// Package rig is what the tests and examples of the recipes stand on: a server in
// fake time with what a test asks of it, and a server in this process for examples.
//
// It imports client, server and server/zktest, and is imported by tests only.
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

// Run runs a test with a server in fake time, beside others.
func Run(t *testing.T, test func(t *testing.T, zs *zktest.Server)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, zktest.Run(t)) })
}

// Within returns a context for what has to work in the end: an hour of fake time.
func Within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// Must ends the test if there is an error.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// NoWatches fails the test if a watch is left at the server when all is quiet.
func NoWatches(t *testing.T, zs *zktest.Server) {
	t.Helper()
	synctest.Wait()
	if w := zs.Watches(); len(w) != 0 {
		t.Errorf("watches are left: %v", w)
	}
}

// Children returns the names below a path in order, none if there is no such znode.
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

// Embedded runs a server in this process, in real time, and returns a client of it,
// for examples: a program would say client.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181").
// It panics if that fails, since an example has nobody to tell.
func Embedded() (c *client.Client, stop func()) {
	srv, err := server.Start(context.Background(), server.Config{Memory: true, ExtendedTypes: true})
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
