package naming_test

import (
	"context"
	"fmt"
	"net"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/naming"
	"github.com/zkgo/zkgo/server"
)

func Example() {
	ctx := context.Background()
	srv, err := server.Start(ctx, server.Config{Memory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	<-srv.Ready()
	dial := func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }
	c, err := client.Connect(ctx, "embedded", client.WithDialer(dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

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
