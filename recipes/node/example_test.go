package node_test

import (
	"context"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/node"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func ExampleKeep() {
	ctx := context.Background()
	c, stop := rig.Embedded()
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
	c, stop := rig.Embedded()
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

// The znode survives a restart of its program, but disappears when the program stops
// permanently.
func ExampleKeepTTL() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	n := node.KeepTTL(recipes.On(c), "/jobs/nightly", []byte("half done"), time.Minute)
	fmt.Println(n.Wait(ctx))
	n.Close() // the time to live starts now
	data, _, err := c.Get(ctx, "/jobs/nightly")
	fmt.Println(string(data), err)
	// Output:
	// <nil>
	// half done <nil>
}
