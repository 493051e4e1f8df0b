package queue_test

import (
	"context"
	"fmt"
	"net"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/queue"
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
	c, err := client.Connect(ctx, "zk", client.WithDialer(func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	mail := queue.NewPriority(recipes.On(c), "/queues/mail")
	for letter, priority := range map[string]int32{"bill": 5, "telegram": 1} {
		if err := mail.Put(ctx, priority, []byte(letter)); err != nil {
			fmt.Println(err)
		}
	}
	left := 2
	for item, err := range mail.Items(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		// It stays in the queue until it is acknowledged.
		fmt.Printf("%s %v\n", item.Values[0], item.Ack(ctx))
		if left--; left == 0 {
			break
		}
	}
	// Output:
	// telegram <nil>
	// bill <nil>
}
