package cache_test

import (
	"context"
	"fmt"
	"net"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
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

func ExampleNewTree() {
	ctx := context.Background()
	c, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	_, _ = c.Create(ctx, "/app/workers/w1", []byte("10.0.0.7"), client.CreateParents)
	_, _ = c.Create(ctx, "/app/workers/w2", []byte("10.0.0.8"))

	tree := cache.NewTree(recipes.On(c), "/app")
	defer tree.Close()
	if err := tree.Wait(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for n := range tree.Children("/app/workers") {
		fmt.Println(n.Name(), string(n.Data))
	}
	_, _ = c.Set(ctx, "/app/workers/w2", []byte("10.0.0.9"), client.AnyVersion)
	n, err := tree.WaitFor(ctx, "/app/workers/w2", func(n cache.Node, there bool) bool { return there && n.Stat.Version > 0 })
	fmt.Println(n.Name(), string(n.Data), err)
	// Output:
	// w1 10.0.0.7
	// w2 10.0.0.8
	// w2 10.0.0.9 <nil>
}

func ExampleCache_Changes() {
	ctx := context.Background()
	c, stop, err := connect(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	config := cache.NewNode(recipes.On(c), "/config")
	defer config.Close()
	if err := config.Wait(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for change, err := range config.Changes(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch change.Kind {
		case cache.Resync:
			fmt.Println("begin with All:", config.Len())
			_, _ = c.Create(ctx, "/config", []byte("v1"))
		case cache.Completed:
		default:
			fmt.Println(change.Kind, change.Node.Path, string(change.Node.Data))
			return
		}
	}
	// Output:
	// begin with All: 0
	// Added /config v1
}
