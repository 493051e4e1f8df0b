package election_test

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/election"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func ExampleElection_Run() {
	c, stop := rig.Embedded()
	defer stop()
	e := election.New(recipes.On(c), "/scheduler", []byte("host-7"))
	err := e.Run(context.Background(), func(ctx context.Context, term *election.Term) error {
		if err := term.Proclaim(ctx, []byte("host-7, port 8080")); err != nil {
			return err
		}
		leader, err := e.Leader(ctx)
		fmt.Printf("%s leads, %v\n", leader.Data, err)
		return nil // resign
	})
	fmt.Println(err)
	// Output:
	// host-7, port 8080 leads, <nil>
	// <nil>
}

func ExampleElection_Observe() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	e := election.New(recipes.On(c), "/scheduler", []byte("host-7"))
	term, err := e.Campaign(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for leader, err := range e.Observe(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if leader.Path == "" {
			fmt.Println("nobody leads")
			return
		}
		fmt.Printf("%s leads\n", leader.Data)
		_ = term.Resign(ctx)
	}
	// Output:
	// host-7 leads
	// nobody leads
}

func ExampleLatch() {
	c, stop := rig.Embedded()
	defer stop()
	ctx := context.Background()
	latch := election.NewLatch(ctx, recipes.On(c), "/leader", []byte("host-7"))
	defer latch.Close()
	_, err := latch.Await(ctx)
	fmt.Println(latch.HasLeadership(), err)
	// Output: true <nil>
}
