package counter_test

import (
	"context"
	"fmt"
	"net"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/counter"
	"github.com/zkgo/zkgo/server"
)

func Example() {
	ctx := context.Background()
	srv, err := server.Start(ctx, server.Config{Memory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	<-srv.Ready()
	c, err := client.Connect(ctx, "zk", client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	orders := counter.NewLong(recipes.On(c), "/counters/orders")
	r, err := orders.Add(ctx, 3)
	fmt.Println(r.Succeeded, r.Pre, r.Post, err)
	r, err = orders.CompareAndSet(ctx, 7, 8)
	fmt.Println(r.Succeeded, r.Pre, err)

	workers := counter.NewSharedCount(recipes.On(c), "/config/workers", 4)
	old, _ := workers.Get(ctx)
	now, ok, err := workers.TrySet(ctx, old, 5)
	fmt.Println(now.Value, ok, err)
	now, ok, err = workers.TrySet(ctx, old, 6) // somebody, it was us, has changed it since
	fmt.Println(now.Value, ok, err)
	// Output:
	// true 0 3 <nil>
	// false 3 <nil>
	// 5 true <nil>
	// 5 false <nil>
}
