package counter_test

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/counter"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func Example() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	orders := counter.NewLong(recipes.On(c), "/counters/orders")
	r, err := orders.Add(ctx, 3)
	fmt.Println(r.Succeeded, r.Pre, r.Post, err)
	r, err = orders.CompareAndSet(ctx, 7, 8)
	fmt.Println(r.Succeeded, r.Pre, err)

	workers := counter.NewSharedCount(recipes.On(c), "/config/workers", 4)
	old, _ := workers.Get(ctx)
	now, ok, err := workers.TrySet(ctx, old, 5)
	fmt.Println(now.Value, ok, err)
	now, ok, err = workers.TrySet(ctx, old, 6) // we have changed it since
	fmt.Println(now.Value, ok, err)
	// Output:
	// true 0 3 <nil>
	// false 3 <nil>
	// 5 true <nil>
	// 5 false <nil>
}

// We allocate numbers in blocks, so that few numbers need a request.
func ExampleCached() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	orders := counter.NewLong(recipes.On(c), "/counters/orders")
	numbers, err := counter.NewCached(orders, 100)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fmt.Println(numbers.Next(ctx))
	}
	fmt.Println(orders.Get(ctx))
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 100 <nil>
}

// We replace a value unless another client has replaced it since we read it. Then we follow
// its changes.
func ExampleSharedValue() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	motto := counter.NewSharedValue(recipes.On(c), "/motto", []byte("none"))
	old, err := motto.Get(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	now, replaced, err := motto.TrySet(ctx, old, []byte("first things first"))
	fmt.Printf("%s %v %v\n", now.Value, replaced, err)
	for now, err := range motto.Changes(ctx) {
		fmt.Printf("%s %v\n", now.Value, err)
		break // otherwise until ctx ends
	}
	// Output:
	// first things first true <nil>
	// first things first <nil>
}
