package zktest_test

import (
	"fmt"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func ExampleWithAddr() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t, zktest.WithAddr("127.0.0.1:2181"))
	// zs.Addrs() is 127.0.0.1:2181 from now on, so no other process may listen there.
	conn := connect(t, zs)
	create(t, conn, "/a", "", 0)
	fmt.Println(zs.Exists("/a"))
	// Output: true
}

func ExampleMatch_Means() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	create(t, conn, "/a", "", 0)
	create(t, conn, "/b", "", 0)
	for r, n := range zs.RequestCounts() {
		if (zktest.Match{Op: proto.OpCreate, Path: "/a"}).Means(r) {
			fmt.Println(r.Op, r.Path, n)
		}
	}
	// Output: create /a 1
}

func ExampleCluster_Serving() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	fmt.Println(cl.LeaderNow() != nil, cl.Serving())
	cl.Kill(cl.Follower().ID())
	fmt.Println(cl.Serving()) // all running servers
	lead := cl.Leader()
	cl.Kill(cl.Follower().ID())
	lead.Wait("the leader has noticed", func() bool { return cl.LeaderNow() == nil })
	fmt.Println(cl.Serving())
	// Output:
	// true true
	// true
	// false
}

func ExampleServer_Running() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.Pause()
	fmt.Println(zs.Running(), zs.Paused())
	zs.Resume()
	zs.Kill()
	fmt.Println(zs.Running(), zs.Paused())
	// Output:
	// true true
	// false false
}
