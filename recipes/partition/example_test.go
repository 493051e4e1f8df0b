package partition_test

import (
	"context"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/partition"
	"github.com/zkgo/zkgo/tests/kit/rig"
)

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	c, stopServer := rig.Embedded()
	defer stopServer()

	shards := []string{"s1", "s2", "s3"}
	p := partition.New(recipes.On(c), "/shards", "worker-7", shards, partition.WithQuietTime(10*time.Millisecond))
	err := p.Run(ctx, func(ctx context.Context, share partition.Share) error {
		fmt.Println(share.Items, share.Leases["s2"].Err())
		stop() // otherwise it runs until other members come or go
		<-ctx.Done()
		return nil
	})
	fmt.Println(err)
	// Output:
	// [s1 s2 s3] <nil>
	// partition /shards: context canceled
}
