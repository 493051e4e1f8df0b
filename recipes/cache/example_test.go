package cache_test

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/cache"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func ExampleNewTree() {
	ctx := context.Background()
	c, stop := rig.Embedded()
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
	c, stop := rig.Embedded()
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

// We wait for one znode and read it without asking the server.
func ExampleNewNode() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	n := cache.NewNode(recipes.On(c), "/motto")
	defer n.Close()
	_, _ = c.Create(ctx, "/motto", []byte("first things first"))
	motto, err := n.WaitFor(ctx, "/motto", func(_ cache.Node, there bool) bool { return there })
	fmt.Printf("%s %v\n", motto.Data, err)
	// Output: first things first <nil>
}

// The children of a znode, in order.
func ExampleNewChildren() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	for _, path := range []string{"/hosts", "/hosts/h2", "/hosts/h1"} {
		_, _ = c.Create(ctx, path, []byte("up"))
	}
	hosts := cache.NewChildren(recipes.On(c), "/hosts")
	defer hosts.Close()
	if err := hosts.Wait(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for h := range hosts.Children("/hosts") {
		fmt.Printf("%s %s\n", h.Name(), h.Data)
	}
	// Output:
	// h1 up
	// h2 up
}
