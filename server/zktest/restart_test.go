package zktest_test

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// A server on disk should restart with its data, its sessions and its address.
func TestKillAndRestartAlone(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t, zktest.OnDisk())
	addr := zs.Addrs()[0]
	c, events := dial(t, zs.Addrs(), net.DialTimeout)
	create(t, c, "/mine", "1", zk.FlagEphemeral)
	id := c.SessionID()
	zs.Kill()
	awaitState(t, events, zk.StateDisconnected)
	if _, err := zs.Dial(); err == nil {
		t.Error("a killed server accepts clients")
	}
	zs.Restart()
	awaitState(t, events, zk.StateHasSession)
	if zs.Get("/mine") != "1" || c.SessionID() != id || zs.Addrs()[0] != addr {
		t.Error("not what it was")
	}
}

func TestRestartInMemoryIsEmpty(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Set("/a", "1")
	zs.Kill()
	zs.Restart()
	if zs.Exists("/a") {
		t.Error("the server kept data without a disk")
	}
	rawConnect(t, zs).create("/b", proto.ModePersistent)
}

// A paused server should send no replies, expire nothing and write nothing until Resume.
func TestPauseAlone(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{"memory": nil, "disk": {zktest.OnDisk()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				zs := zktest.Run(t, opts...)
				c := rawConnect(t, zs)
				c.create("/mine", proto.ModeEphemeral)
				zs.Pause()
				answered := make(chan error, 1)
				go func() {
					code, err := c.call(proto.OpCreate, &proto.CreateRequest{Path: "/late", ACL: proto.OpenACL()})
					if err == nil {
						err = code.Err()
					}
					answered <- err
				}()
				time.Sleep(10 * time.Minute)
				if len(answered) > 0 || zs.Exists("/late") || !zs.Exists("/mine") {
					t.Errorf("a paused server works:\n%s", zs.Dump())
				}
				zs.Resume()
				if err := <-answered; err != nil {
					t.Log("the session of a silent client: ", err) // either may come first
				}
			})
		})
	}
}

// A member that was paused should catch up with the others.
func TestPauseOnDisk(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		old := cl.Leader()
		cl.Pause(old.ID())
		old.Wait("another leader", func() bool { return cl.Leader() != old })
		cl.Leader().Set("/a", "1")
		time.Sleep(time.Minute)
		cl.Resume(old.ID())
		cl.WaitServing()
		old.WaitExists("/a")
		cl.Pause(old.ID())
		old.Kill() // a paused server can be killed, too
		old.Restart()
	}, zktest.OnDisk())
}
