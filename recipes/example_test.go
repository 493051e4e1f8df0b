package recipes_test

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/lock"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// All recipes share a client's single connection.
func ExampleOn() {
	ctx := context.Background()
	c, stop := rig.Embedded() // client.Connect(ctx, "zk1:2181,zk2:2181,zk3:2181/shop")
	defer stop()

	conn := recipes.On(c)
	lease, err := lock.NewMutex(conn, "/locks/stock").Acquire(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lease.Release(ctx))
	// Output: <nil>
}
