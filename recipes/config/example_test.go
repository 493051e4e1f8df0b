package config_test

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/config"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func Example() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	type settings struct{ Limit int }
	_, _ = c.Create(ctx, "/config", []byte(`{"Limit": 10}`))
	cfg := config.Watch(recipes.On(c), "/config", config.JSON[settings])
	defer cfg.Close()
	s, err := cfg.Wait(ctx)
	fmt.Println(s.Limit, err)
	_, _ = c.Set(ctx, "/config", []byte("oops"), client.AnyVersion)
	for s, err := range cfg.Changes(ctx) {
		if err != nil {
			fmt.Println("still", s.Limit)
			return
		}
	}
	// Output:
	// 10 <nil>
	// still 10
}
