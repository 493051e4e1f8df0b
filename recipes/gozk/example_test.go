package gozk_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/recipes/gozk"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/server"
)

// A program that uses go-zookeeper acquires a lock.
func ExampleOn() {
	ctx := context.Background()
	srv, err := server.Start(ctx, server.Config{Memory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	<-srv.Ready()
	embedded := func(string, string, time.Duration) (net.Conn, error) { return srv.Dial() }

	d := gozk.NewDialer(embedded) // gozk.NewDialer(nil) uses TCP
	c, events, err := zk.Connect([]string{"127.0.0.1"}, 10*time.Second, zk.WithDialer(d.Dial), zk.WithLogInfo(false))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	lease, err := lock.NewMutex(gozk.On(c, events, d), "/locks/stock").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The fencing token and Done work the same as with any other client.
	_, err = c.Create("/stock", []byte("7"), 0, zk.WorldACL(zk.PermAll))
	fmt.Println("stocked:", err, "held:", lease.Err())
	fmt.Println("released:", lease.Release(ctx))
	// Output:
	// stocked: <nil> held: <nil>
	// released: <nil>
}
