package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server"
)

// start runs a server in this process and returns the option that connects to it.
func start() (dial client.Option, stop func()) {
	srv, err := server.Start(context.Background(), server.Config{Memory: true})
	if err != nil {
		panic(err)
	}
	<-srv.Ready()
	dial = client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return srv.Dial() })
	return dial, func() { _ = srv.Close() }
}

func Example() {
	embedded, stop := start()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	c, err := client.Connect(ctx, "zk1:2181,zk2:2181/app", embedded) // without embedded: over TCP
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	path, err := c.Create(ctx, "/workers/w-", []byte("10.0.0.7"), client.Ephemeral, client.Sequential, client.CreateParents)
	fmt.Println(path, err)
	data, stat, err := c.Get(ctx, path)
	fmt.Printf("%s, version %d, %v\n", data, stat.Version, err)
	// Output:
	// /workers/w-0000000000 <nil>
	// 10.0.0.7, version 0, <nil>
}

func ExampleClient_Set() {
	embedded, stop := start()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, "zk", embedded)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, err := c.Create(ctx, "/counter", []byte("1")); err != nil {
		fmt.Println(err)
		return
	}

	_, stat, _ := c.Get(ctx, "/counter")
	_, err = c.Set(ctx, "/counter", []byte("2"), stat.Version)
	fmt.Println("first:", err)
	_, err = c.Set(ctx, "/counter", []byte("2"), stat.Version)
	switch {
	case errors.Is(err, client.ErrBadVersion):
		fmt.Println("second: somebody was faster:", err)
	case errors.Is(err, client.ErrUnknownOutcome):
		fmt.Println("second: read it to know:", err)
	}
	// Output:
	// first: <nil>
	// second: somebody was faster: zookeeper: setData /counter: BadVersion (-103)
}

func ExampleClient_GetW() {
	embedded, stop := start()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, "zk", embedded)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	if _, err := c.Create(ctx, "/config", []byte("v1")); err != nil {
		fmt.Println(err)
		return
	}

	data, _, watch, err := c.GetW(ctx, "/config")
	fmt.Printf("%s %v\n", data, err)
	_, err = c.Set(ctx, "/config", []byte("v2"), client.AnyVersion)
	fmt.Println(err)
	event, ok := <-watch.Events()
	fmt.Println(event.Type, event.Path, ok)
	// Output:
	// v1 <nil>
	// <nil>
	// NodeDataChanged /config true
}

func ExampleClient_WatchRecursive() {
	embedded, stop := start()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, "zk", embedded)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	watch, err := c.WatchRecursive(ctx, "/app")
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = c.Create(ctx, "/app/a", nil, client.CreateParents)
	_ = c.DeleteAll(ctx, "/app")
	_ = watch.Remove(ctx)
	for event := range watch.Events() {
		if event.Type == client.EventResync {
			fmt.Println("read everything anew")
		}
		fmt.Println(event.Type, event.Path)
	}
	fmt.Println(watch.Err())
	// Output:
	// NodeCreated /app
	// NodeCreated /app/a
	// NodeDeleted /app/a
	// NodeDeleted /app
	// watch removed
}

func ExampleClient_Txn() {
	embedded, stop := start()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, "zk", embedded)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	results, err := c.Txn().
		Create("/a", []byte("1")).
		Create("/a/b-", nil, client.Sequential).
		Check("/a", 0).
		Commit(ctx)
	fmt.Println(results[1].Path, err)

	_, err = c.Txn().Set("/a", nil, client.AnyVersion).Check("/a", 7).Commit(ctx)
	fmt.Println(err)
	// Output:
	// /a/b-0000000000 <nil>
	// operation 1 of a transaction: zookeeper: check /a: BadVersion (-103)
}

func ExampleClient_Subscribe() {
	embedded, stop := start()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, "zk", embedded)
	if err != nil {
		fmt.Println(err)
		return
	}
	states := c.Subscribe()
	_ = c.Close()
	for change := range states.C() {
		fmt.Println(change.State)
	}
	// Output:
	// Connected
	// Closed
}

func ExampleClient_Lease() {
	embedded, stop := start()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, "zk", embedded)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	lease, err := c.Lease(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release()
	// The ephemeral znodes of lease.Session() exist while the lease is valid.
	select {
	case <-lease.Done():
		fmt.Println("stop what needs them:", lease.Err())
	default:
		fmt.Println("go on:", lease.Err())
	}
	// Output: go on: <nil>
}
