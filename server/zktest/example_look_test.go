package zktest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

func ExampleServer_Record() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	rec := zs.Record(zktest.Match{Session: conn.SessionID(), Path: "/*"})
	create(t, conn, "/config", "v1", 0)
	_, _, err := conn.Get("/nothing")
	rec.Stop()
	fmt.Println(err, len(rec.Lines()))
	// String returns all lines; here the session is replaced with ID.
	fmt.Print(strings.ReplaceAll(rec.String(), fmt.Sprintf("0x%x ", uint64(conn.SessionID())), "ID "))
	// Output:
	// zk: node does not exist 4
	// ID > 1 create /config "v1"
	// ID < 1 create /config: zxid 0x2
	// ID > 2 getData /nothing
	// ID < 2 getData /nothing: zxid 0x2, NoNode
}

func ExampleServer_SeedJSON() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.SeedJSON(`{"app": {"config": "v1", "locks": {}}}`)
	fmt.Print(zs.Dump())
	// Output:
	// /
	//   app
	//     config = "v1"
	//     locks
}

func ExampleServer_SeedYAML() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.SeedYAML(`
app:
  config: v1
  limits: {"": all, jobs: 10}
`)
	fmt.Print(zs.Dump())
	// Output:
	// /
	//   app
	//     config = "v1"
	//     limits = "all"
	//       jobs = "10"
}

func ExampleServer_SeedText() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.SeedText(`/
  app
    config = "v1"
    locks
`)
	fmt.Println(zs.Children("/app"))
	// Output: [config locks]
}

func ExampleServer_SeedFile() {
	t := new(example)
	defer t.end()

	file := filepath.Join(t.TempDir(), "tree.yaml") // in a test: testdata/tree.yaml
	if err := os.WriteFile(file, []byte("app: {config: v1}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	zs := zktest.Run(t)
	zs.SeedFile(file)
	fmt.Println(zs.Get("/app/config"))
	// Output: v1
}

func ExampleServer_Sessions() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	c := zs.Client(t, client.WithSessionTimeout(10*time.Second))
	ctx := context.Background()
	if _, err := c.Create(ctx, "/worker", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	for _, s := range zs.Sessions() {
		fmt.Println(s.ID == c.Session().ID, s.Timeout, s.Connected)
	}
	fmt.Println(zs.Ephemerals()["/worker"] == c.Session().ID, zs.Stat("/worker").EphemeralOwner == c.Session().ID)
	// Output:
	// true 10s true
	// true true
}

func ExampleServer_Watches() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.Set("/config", "v1")
	conn := connect(t, zs)
	if _, _, _, err := conn.GetW("/config"); err != nil {
		t.Fatal(err)
	}
	for _, w := range zs.Watches() {
		fmt.Println(w.Path, w.Kind, w.Session == conn.SessionID())
	}
	zs.WaitForWatch("/config", zktest.DataWatch)
	// Output: /config data true
}

func ExampleServer_Wait() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	done := make(chan error, 1)
	go func() { // the code under test
		_, err := conn.Create("/ready", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
		done <- err
	}()
	zs.WaitExists("/ready")
	fmt.Println(<-done)
	zs.Delete("/ready") // and its subtree
	zs.WaitGone("/ready")
	zs.Wait("an empty tree", func() bool { return zs.Dump() == "/\n" })
	fmt.Print(zs.Dump())
	// Output:
	// <nil>
	// /
}

func ExampleServer_RequestCounts() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	zs.ForgetRequests()
	for range 2 {
		if _, _, err := conn.Get("/"); err != nil {
			t.Fatal(err)
		}
	}
	for request, count := range zs.RequestCounts() {
		request.Session = 0
		fmt.Println(request, count)
	}
	// Output: getData / 2
}

func ExampleWithConfig() {
	t := new(example)
	defer t.end()

	// A short tick allows short sessions. WithConfig enables features of the real
	// server.
	zs := zktest.Run(t, zktest.WithTick(50*time.Millisecond), zktest.WithConfig(func(c *server.Config) {
		c.Znodes.EnforceQuota = true
	}))
	c := zs.Client(t)
	fmt.Println(c.Session().Timeout)
	// Output: 1s
}

// With WithoutPings time also passes for connected clients. WithLogs and
// WithConversation write to the test's log: the server's log immediately, and the
// requests and replies if the test fails.
func ExampleWithoutPings() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t, zktest.WithoutPings(), zktest.WithLogs(), zktest.WithConversation())
	c := zs.Client(t)
	if _, err := c.Create(context.Background(), "/worker", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	zs.Advance(time.Minute)
	fmt.Println(zs.Exists("/worker"))
	// Output: false
}

func ExampleServer_Close() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	fmt.Println(zs.ID(), zs.Server().Status().Serving) // the underlying server
	zs.Set("/a", "1")
	zs.Close()
	_, err := zs.Dial()
	fmt.Println(zs.Get("/a"), err)
	// Output:
	// 1 true
	// 1 dial zktest: connection refused
}

// Match selects requests, and prints in readable form.
func ExampleMatch() {
	fmt.Println(zktest.Match{Op: proto.OpCreate, Path: "/jobs/*", Nth: 3})
	fmt.Println(zktest.Request{Op: proto.OpDelete, Path: "/jobs/1"})
	// Output:
	// no. 3 of create /jobs/*
	// delete /jobs/1
}
