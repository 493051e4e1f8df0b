package node_test

import (
	"context"
	"fmt"
	"net"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/node"
	"github.com/zkgo/zkgo/server"
)

// connect runs a server in this process and connects a client to it.
func connect(ctx context.Context) (c *client.Client, stop func(), err error) {
	srv, err := server.Start(ctx, server.Config{Memory: true})
	if err != nil {
		return nil, nil, err
	}
	<-srv.Ready()
	dial := func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }
	c, err = client.Connect(ctx, "embedded", client.WithDialer(dial))
	if err != nil {
		return nil, nil, err
	}
	return c, func() { _, _ = c.Close(), srv.Close() }, nil
}

func ExampleKeep() {
	ctx := context.Background()
	c, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	n := node.Keep(recipes.On(c), "/hosts/h7", []byte("10.0.0.7"))
	defer n.Close()
	fmt.Println(n.Wait(ctx))
	data, _, err := c.Get(ctx, "/hosts/h7")
	fmt.Println(string(data), err)
	// Output:
	// <nil>
	// 10.0.0.7 <nil>
}

func ExampleGroup() {
	ctx := context.Background()
	c, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()

	group := node.NewGroup(recipes.On(c), "/workers")
	defer group.Close()
	me := group.Join("w1", []byte("idle"))
	defer me.Close()
	for members, err := range group.Watch(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if data, in := members["w1"]; in {
			fmt.Printf("w1: %s\n", data)
			return
		}
	}
	// Output: w1: idle
}
