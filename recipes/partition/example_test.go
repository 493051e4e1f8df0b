package partition_test

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/partition"
	"github.com/zkgo/zkgo/server"
)

func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	srv, err := server.Start(ctx, server.Config{Memory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	<-srv.Ready()
	c, err := client.Connect(ctx, "embedded", client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	shards := []string{"s1", "s2", "s3"}
	p := partition.New(recipes.On(c), "/shards", "worker-7", shards, partition.WithQuietTime(10*time.Millisecond))
	err = p.Run(ctx, func(ctx context.Context, share partition.Share) error {
		fmt.Println(share.Items, share.Leases["s2"].Err())
		stop() // otherwise until others come or go
		<-ctx.Done()
		return nil
	})
	fmt.Println(err)
	// Output:
	// [s1 s2 s3] <nil>
	// partition /shards: context canceled
}
