package discovery_test

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/discovery"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func Example() {
	ctx := context.Background()
	c, stop := rig.Embedded()
	defer stop()

	d := discovery.New[string](recipes.On(c), "/services")
	uri, _ := discovery.ParseURISpec("{scheme}://{address}:{port}/v1")
	reg, err := d.Register(discovery.Instance[string]{Name: "web", Address: "10.0.0.7", Port: discovery.Port(8080), URI: uri})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	if err := reg.Wait(ctx); err != nil {
		fmt.Println(err)
		return
	}

	web := d.Watch("web")
	defer web.Close()
	inst, err := discovery.NewProvider(web, discovery.RoundRobin[string]()).Get(ctx)
	fmt.Println(inst.BuildURI(nil), err)
	// Output: http://10.0.0.7:8080/v1 <nil>
}
