package zktest_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/server/zktest"
)

func ExampleCluster_Client() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	c := cl.Client(t)
	ctx := context.Background()
	if _, err := c.Create(ctx, "/a", nil); err != nil {
		t.Fatal(err)
	}
	cl.Kill(cl.Follower().ID())
	_, found, err := c.Exists(ctx, "/a", client.Linearizable)
	fmt.Println(found, err)
	// Output: true <nil>
}

func ExampleCluster_Addrs() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	conn, _, err := zk.Connect(cl.Addrs(), 10*time.Second, zk.WithLogger(quiet{})) // over TCP
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	direct, _, err := zk.Connect(cl.Hosts(), 10*time.Second, zk.WithDialer(cl.Dialer()), zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	create(t, conn, "/a", "1", 0)
	if _, err := direct.Sync("/"); err != nil {
		t.Fatal(err)
	}
	data, _, err := direct.Get("/a")
	fmt.Println(string(data), err)
	// Output: 1 <nil>
}

func ExampleCluster_Restart() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3, zktest.OnDisk())
	cl.Leader().Set("/a", "1")
	for _, s := range cl.Servers() {
		cl.Kill(s.ID())
	}
	for _, s := range cl.Servers() {
		cl.Start(s.ID()) // unlike Restart, this doesn't wait for the other servers
	}
	cl.WaitServing()
	fmt.Println(cl.Server(1).Get("/a"))
	// Output: 1
}

func ExampleCluster_Pause() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	old := cl.Leader()
	cl.Pause(old.ID())
	fmt.Println("another one leads:", cl.Leader() != old)
	cl.Resume(old.ID())
	cl.WaitServing()
	// Output: another one leads: true
}

func ExampleCluster_ForceLeaderChange() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	old := cl.Leader()
	lead := cl.ForceLeaderChange()
	fmt.Println(lead != old)
	// Output: true
}

func ExampleCluster_SlowLink() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	lead := cl.Leader().ID()
	for id := 1; id <= 3; id++ {
		if id != lead {
			defer cl.SlowLink(lead, id, 20*time.Millisecond)()
		}
	}
	begun := time.Now()
	cl.Leader().Set("/a", "1")
	fmt.Println(time.Since(begun) >= 40*time.Millisecond)
	// Output: true
}

func ExampleCluster_Advance() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	c := cl.Follower().Client(t)
	if _, err := c.Create(context.Background(), "/worker", nil, client.Ephemeral); err != nil {
		t.Fatal(err)
	}
	cl.Advance(time.Hour)
	fmt.Println("connected:", cl.Leader().Exists("/worker"))
	cl.Follower().ExpireSession(c.Session().ID)
	fmt.Println("expired:", cl.Leader().Exists("/worker"))
	cl.Close() // otherwise the end of the test does it
	// Output:
	// connected: true
	// expired: false
}
