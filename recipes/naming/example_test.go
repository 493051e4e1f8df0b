package naming_test

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/naming"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func Example() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	ids := naming.NewIDs(recipes.On(c), "/ids/orders", 100)
	for range 3 {
		id, err := ids.Next(ctx)
		fmt.Println(id, err)
	}
	names := naming.New(recipes.On(c), "/names")
	lease, err := names.Claim(ctx, "reports", []byte("host-7"))
	if err != nil {
		fmt.Println(err)
		return
	}
	who, _, err := names.Claimed(ctx, "reports")
	fmt.Println(string(who), err, lease.Release(ctx))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
	// host-7 <nil> <nil>
}
