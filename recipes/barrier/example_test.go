package barrier_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/barrier"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

// We close the gate while we change the schema. Processes that arrive in the meantime wait.
func ExampleBarrier() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	gate := barrier.New(recipes.On(c), "/gates/schema")
	fmt.Println(gate.Close(ctx))
	through := make(chan error)
	go func() { through <- gate.Wait(ctx) }()
	// … change the schema …
	fmt.Println(gate.Open(ctx), <-through)
	// Output:
	// <nil>
	// <nil> <nil>
}

// Two processes begin a piece of work together, and end it together.
func ExampleDoubleBarrier() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	var both sync.WaitGroup
	for range 2 { // each represents a process
		both.Go(func() {
			b := barrier.NewDouble(recipes.On(c), "/barriers/night-run", 2)
			if err := b.Enter(ctx); err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println("working")
			if err := b.Leave(ctx); err != nil {
				fmt.Println(err)
			}
		})
	}
	both.Wait()
	// Output:
	// working
	// working
}

// The service opens when any three parts are ready.
func ExampleCountDownLatch() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	latch := barrier.NewCountDownLatch(recipes.On(c), "/latches/ready", 3)
	for range 3 {
		if err := latch.CountDown(ctx); err != nil {
			fmt.Println(err)
			return
		}
	}
	left, err := latch.Left(ctx)
	fmt.Println(left, err, latch.Wait(ctx))
	// Output: 0 <nil> <nil>
}
