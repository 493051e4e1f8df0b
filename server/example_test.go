package server_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

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

// A server as a zoo.cfg describes it. Warnings are for its author: the server starts anyway.
func ExampleLoadConfig() {
	dir, err := os.MkdirTemp("", "zkgo")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "zoo.cfg")
	text := "dataDir=" + dir + "\nclientPort=0\nadmin.enableServer=false\ntickTme=2000\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	cfg, err := server.LoadConfig(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range cfg.Warnings() {
		fmt.Println(strings.TrimPrefix(w, dir))
	}
	srv, err := server.Start(context.Background(), cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer srv.Close()
	<-srv.Ready()
	fmt.Println(srv.Status().Mode, srv.Status().Serving)
	// Output:
	// /zoo.cfg:4: tickTme: unknown key, did you mean tickTime?
	// standalone true
}
