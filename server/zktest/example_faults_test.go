package zktest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func ExampleServer_FailAll() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	fault := zs.FailAll(zktest.Match{Op: proto.OpGetData}, proto.ErrSystemError)
	for range 2 {
		_, _, err := conn.Get("/")
		fmt.Println(err != nil, fault.Happened())
	}
	fault.Cancel()
	_, _, err := conn.Get("/")
	fmt.Println(err)
	// Output:
	// true true
	// true true
	// <nil>
}

func ExampleServer_DelayNext() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	slow := zs.DelayNext(zktest.Match{Op: proto.OpGetData, Nth: 2}, time.Hour)
	answered := make(chan bool)
	go func() {
		for range 2 {
			_, _, err := conn.Get("/")
			answered <- err == nil
		}
	}()
	fmt.Println(<-answered) // the first one isn't delayed
	slow.Wait()
	zs.Advance(time.Hour)
	fmt.Println(<-answered)
	// Output:
	// true
	// true
}

func ExampleServer_LoseNext() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	zs.LoseNext(zktest.Match{Op: proto.OpCreate})
	_, err := conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err)
	fmt.Println("was it done?", zs.Exists("/job"))
	// Output:
	// zk: connection closed
	// was it done? false
}

// We can also inject faults into a handshake, e.g. here the client learns that its session
// has expired.
func ExampleServer_FailNext_handshake() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	before := conn.SessionID()
	zs.FailNext(zktest.Match{Op: proto.OpCreateSession, Session: before}, proto.ErrSessionExpired)
	zs.DropConnection(before)
	zs.Wait("the client has another session", func() bool {
		return conn.State() == zk.StateHasSession && conn.SessionID() != before
	})
	fmt.Println("another session")
	// Output: another session
}

func ExampleServer_DropConnection() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	c := zs.Client(t)
	id := c.Session().ID
	zs.DropConnection(id)
	zs.WaitConnected(id, true) // it reconnects with the same session
	zs.DropConnections()       // all connections
	zs.WaitConnected(id, true)
	fmt.Println(c.Session().ID == id)
	// Output: true
}

func ExampleServer_RefuseConnections() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	accept := zs.RefuseConnections()
	_, err := zs.Dial()
	fmt.Println(err)
	accept()
	nc, err := zs.Dial()
	fmt.Println(err)
	_ = nc.Close()
	// Output:
	// dial zktest: connection refused
	// <nil>
}

func ExampleServer_SlowConnection() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	restore := zs.SlowConnection(conn.SessionID(), 20*time.Millisecond, 0)
	begun := time.Now()
	_, _, err := conn.Get("/")
	fmt.Println(err, time.Since(begun) >= 40*time.Millisecond)
	restore()
	// Output: <nil> true
}

func ExampleServer_SlowConnections() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.Set("/large", string(make([]byte, 10_000)))
	restore := zs.SlowConnections(0, 100_000) // bytes per second
	defer restore()
	conn := connect(t, zs)
	begun := time.Now()
	_, _, err := conn.Get("/large")
	fmt.Println(err, time.Since(begun) >= 100*time.Millisecond)
	// Output: <nil> true
}

func ExampleServer_ReadOnly() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	zs.Set("/config", "v1")
	back := zs.ReadOnly()
	c := zs.Client(t, client.WithReadOnly())
	data, _, err := c.Get(context.Background(), "/config")
	fmt.Println(string(data), err)
	_, err = c.Create(context.Background(), "/job", nil)
	fmt.Println(errors.Is(err, proto.ErrNotReadOnly))
	back()
	// Output:
	// v1 <nil>
	// true
}

func ExampleServer_FillDisk() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t, zktest.OnDisk())
	zs.Set("/kept", "1")
	conn := connect(t, zs)
	heal := zs.FillDisk()
	_, err := conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err)
	heal()
	zs.Kill() // after a disk error a server must be restarted
	zs.Restart()
	fmt.Println(zs.Get("/kept"), zs.Exists("/job"))
	// Output:
	// zk: connection closed
	// 1 false
}

func ExampleServer_FailFsync() {
	t := new(example)
	defer t.end()

	cl := zktest.RunCluster(t, 3, zktest.OnDisk())
	old := cl.Leader()
	conn := connect(t, old)
	heal := old.FailFsync()
	_, err := conn.Create("/job", nil, 0, zk.WorldACL(zk.PermAll))
	fmt.Println(err != nil)
	old.Wait("another one leads", func() bool { return cl.Leader() != old })
	heal()
	// Output:
	// true
}

func ExampleServer_Restart() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t, zktest.OnDisk())
	conn := connect(t, zs)
	create(t, conn, "/job", "todo", zk.FlagEphemeral)
	id := conn.SessionID()
	zs.Kill()
	zs.Restart()
	zs.WaitConnected(id, true)
	fmt.Println(zs.Get("/job"), conn.SessionID() == id)
	// Output: todo true
}

func ExampleServer_Pause() {
	t := new(example)
	defer t.end()

	zs := zktest.Run(t)
	conn := connect(t, zs)
	zs.Pause()
	answered := make(chan bool, 1)
	go func() {
		found, _, err := conn.Exists("/")
		answered <- found && err == nil
	}()
	fmt.Println("answered:", len(answered))
	zs.Resume()
	fmt.Println("answered:", <-answered)
	// Output:
	// answered: 0
	// answered: true
}
