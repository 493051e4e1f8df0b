package zktest_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// example replaces the *testing.T of a real test.
type example struct {
	testing.TB
	cleanups []func()
}

func (*example) Helper()                   {}
func (*example) Failed() bool              { return false }
func (*example) Logf(string, ...any)       {}
func (e *example) Cleanup(f func())        { e.cleanups = append(e.cleanups, f) }
func (*example) Fatal(args ...any)         { panic(fmt.Sprint(args...)) }
func (*example) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (*example) Errorf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

// TempDir returns a directory that exists until the end of the example.
func (e *example) TempDir() string {
	dir, err := os.MkdirTemp("", "zktest")
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func (e *example) end() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
}

func ExampleRun() {
	t := new(example) // in a test: its t
	defer t.end()     // go test does this

	zs := zktest.Run(t)
	conn, _, err := zk.Connect(zs.Addrs(), 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	path, err := conn.Create("/hello", []byte("world"), 0, zk.WorldACL(zk.PermAll))
	fmt.Println(path, err)
	fmt.Println(zs.Get("/hello"))
	// Output:
	// /hello <nil>
	// world
}

func ExampleServer_Dialer() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn, _, err := zk.Connect([]string{"127.0.0.1"}, 10*time.Second, zk.WithDialer(zs.Dialer()), zk.WithLogger(quiet{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	found, _, err := conn.Exists("/")
	fmt.Println(found, err)
	// Output: true <nil>
}

func ExampleServer_Advance() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	worker := connect(t, zs)
	create(t, worker, "/worker", "", zk.FlagEphemeral)

	zs.HangConnection(worker.SessionID()) // its timeout is 30 seconds
	zs.Advance(20 * time.Second)
	fmt.Println(zs.Exists("/worker"))
	zs.Advance(20 * time.Second)
	fmt.Println(zs.Exists("/worker"))
	// Output:
	// true
	// false
}

func ExampleServer_Dump() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.Seed(map[string]string{
		"/app/config": "v1",
		"/app/locks":  "",
	})
	fmt.Print(zs.Dump())
	// Output:
	// /
	//   app
	//     config = "v1"
	//     locks
}

func ExampleServer_WaitForWatch() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.Set("/config", "v1")
	conn := connect(t, zs)
	done := make(chan string)
	go func() {
		_, _, changed, _ := conn.GetW("/config")
		<-changed
		data, _, _ := conn.Get("/config")
		done <- string(data)
	}()
	zs.WaitForWatch("/config") // now the change can't come too early
	zs.Set("/config", "v2")
	fmt.Println(<-done)
	// Output: v2
}

func ExampleServer_Requests() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	for range 3 {
		if _, _, err := conn.Exists("/config"); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(zs.Requests(zktest.Match{Op: proto.OpExists, Path: "/config"}))
	// Output: 3
}

func ExampleServer_FailNext() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	zs.FailNext(zktest.Match{Op: proto.OpGetData, Path: "/a*"}, proto.ErrNoAuth)
	_, _, err := conn.Get("/anything")
	fmt.Println(err)
	// Output: zk: not authenticated
}

func ExampleServer_LoseReply() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	zs.LoseReply(zktest.Match{Op: proto.OpCreate})
	_, err := conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err)
	fmt.Println("and yet it was done:", zs.Exists("/job"))
	// Output:
	// zk: connection closed
	// and yet it was done: true
}

func ExampleServer_ExpireSession() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	create(t, conn, "/leader", "", zk.FlagEphemeral)
	zs.ExpireSession(conn.SessionID())
	fmt.Println(zs.Exists("/leader"))
	// Output: false
}

func ExampleServer_Reset() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.Set("/config", "v1")
	start := zs.Snapshot()
	for _, name := range []string{"one", "two"} { // in a test: t.Run
		zs.Set("/config", name)
		zs.Set("/rubbish", name)
		zs.Reset(start)
	}
	fmt.Print(zs.Dump())
	// Output:
	// /
	//   config = "v1"
}

func ExampleRunCluster() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	cl.Leader().Set("/a", "1")
	cl.Kill(cl.Leader().ID())
	cl.Leader().Set("/a", "2") // the new leader
	fmt.Println(cl.Leader().Get("/a"))
	// Output: 2
}

func ExampleCluster_Partition() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3)
	alone := cl.Follower()
	cl.Partition([]int{alone.ID()})
	cl.Leader().Set("/a", "1")
	fmt.Println(alone.Exists("/a"))
	cl.Heal()
	alone.WaitExists("/a")
	fmt.Println(alone.Exists("/a"))
	// Output:
	// false
	// true
}
