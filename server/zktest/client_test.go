package zktest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
)

func ExampleServer_Client() {
	t := new(example) // in a test: its t
	defer t.end()

	zs := zktest.Run(t)
	c := zs.Client(t)
	path, err := c.Create(context.Background(), "/hello", []byte("world"), client.Ephemeral)
	fmt.Println(path, err)
	fmt.Println(zs.Get("/hello"))
	// Output:
	// /hello <nil>
	// world
}

// TestClusterClientSurvivesFailures checks that a cluster's client survives the failure of any
// server.
func TestClusterClientSurvivesFailures(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 3)
	c := cl.Client(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := c.Create(ctx, "/a", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	cl.Kill(1)
	if _, found, err := c.Exists(ctx, "/a", client.Linearizable); err != nil || !found {
		t.Fatalf("after a server was killed: %v, %v", found, err)
	}
}
