package server_test

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server"
)

// A server that keeps everything in memory and opens no port, e.g. for use inside a
// program or a test.
func ExampleStart() {
	ctx := context.Background()
	srv, err := server.Start(ctx, server.Config{Memory: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	dial := func(context.Context, string, string) (net.Conn, error) { return srv.Dial() }
	c, err := client.Connect(ctx, "embedded", client.WithDialer(dial))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	path, err := c.Create(ctx, "/hello", []byte("world"))
	fmt.Println(path, err)
	// Output: /hello <nil>
}

// A server that keeps its data in a directory and listens on a port.
func ExampleStart_onDisk() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "zkgo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	srv, err := server.Start(ctx, server.Config{
		DataDir:    dir,
		ClientAddr: "127.0.0.1:0", // a free port; without ClientAddr only Dial reaches the server
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()

	c, err := client.Connect(ctx, srv.ClientAddr())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	_, there, err := c.Exists(ctx, "/zookeeper")
	fmt.Println(there, err)
	// Output: true <nil>
}
