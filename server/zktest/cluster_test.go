package zktest_test

import (
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server"
	"github.com/zkgo/zkgo/server/zktest"
)

// inCluster runs a test with several servers in fake time, so that a busy machine
// doesn't cause elections.
func inCluster(t *testing.T, n int, test func(t *testing.T, cl *zktest.Cluster), opts ...zktest.Option) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, zktest.RunCluster(t, n, opts...)) })
}

func TestClusterOverTCP(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 3)
	c, _ := dial(t, cl.Addrs(), net.DialTimeout)
	create(t, c, "/a", "1", 0)
	cl.Server(1).Set("/b", "2")
	for _, s := range cl.Servers() {
		s.WaitExists("/a")
		if got := s.Get("/b"); got != "2" {
			t.Errorf("server %d: %q", s.ID(), got)
		}
	}
}

func TestClusterDialer(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		for i, h := range cl.Hosts() {
			c, _ := dial(t, []string{h}, cl.Dialer())
			create(t, c, fmt.Sprint("/on", i+1), "", zk.FlagEphemeral)
			if got := cl.Server(i + 1).Sessions(); !got[i].Connected || got[i].ID != c.SessionID() {
				t.Errorf("%+v", got)
			}
			defer c.Close()
		}
	})
}

func TestClusterAdvance(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		lead, follower := cl.Leader(), cl.Follower()
		var here, gone []string
		for _, s := range []*zktest.Server{lead, follower} {
			stays, leaves := rawConnect(t, s), rawConnect(t, s)
			here, gone = append(here, fmt.Sprint("/here", s.ID())), append(gone, fmt.Sprint("/gone", s.ID()))
			stays.create(here[len(here)-1], proto.ModeEphemeral)
			leaves.create(gone[len(gone)-1], proto.ModeEphemeral)
			s.DropConnection(leaves.session)
		}
		cl.Advance(20 * time.Second)
		if got := len(lead.Ephemerals()); got != 4 {
			t.Fatalf("before the time:\n%s", lead.Dump())
		}
		follower.Advance(13 * time.Second)
		for _, s := range cl.Servers() {
			for i := range here {
				if !s.Exists(here[i]) || s.Exists(gone[i]) {
					t.Fatalf("server %d:\n%s", s.ID(), s.Dump())
				}
			}
		}
	})
}

func TestPartitionAndHeal(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		old := cl.Leader()
		w := rawConnect(t, old)
		w.create("/before", proto.ModePersistent)
		cl.Partition([]int{old.ID()})
		if err := w.send(proto.OpCreate, &proto.CreateRequest{Path: "/never", ACL: proto.OpenACL()}); err != nil {
			t.Fatal(err)
		}
		if b, err := w.frame(); err == nil {
			t.Errorf("a server without the others answered a write: %x", b)
		}
		var lead *zktest.Server
		old.Wait("another leader", func() bool { lead = cl.Leader(); return lead != old })
		lead.Set("/after", "1")
		if old.Exists("/after") {
			t.Error("it crossed a network that is cut")
		}
		cl.Heal()
		cl.WaitServing()
		old.WaitExists("/after")
		if old.Exists("/never") {
			t.Error("a write proposed by the minority was executed")
		}
	})
}

func TestKillAndRestart(t *testing.T) {
	for name, opts := range map[string][]zktest.Option{"memory": nil, "disk": {zktest.OnDisk()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && name == "disk" {
				t.Skip("elections take seconds; not with -short")
			}
			cl := zktest.RunCluster(t, 3, opts...)
			lead := cl.Leader()
			lead.Set("/a", "1")
			addr := lead.Addrs()[0]
			cl.Kill(lead.ID())
			next := cl.Leader()
			if next == lead {
				t.Fatal("a dead server leads")
			}
			next.Set("/b", "2")
			cl.Restart(lead.ID())
			cl.WaitServing()
			lead.WaitExists("/b")
			if lead.Get("/a") != "1" || lead.Addrs()[0] != addr {
				t.Error("not what it was")
			}
			c, _ := dial(t, lead.Addrs(), net.DialTimeout)
			create(t, c, "/c", "", 0)
		})
	}
}

// With data on disk, we should be able to kill all servers.
func TestKillAllAndRestart(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 3, zktest.OnDisk())
	cl.Leader().Set("/a", "1")
	for _, s := range cl.Servers() {
		cl.Kill(s.ID())
	}
	for _, s := range cl.Servers()[:2] {
		cl.Start(s.ID())
	}
	cl.WaitServing()
	cl.Leader().WaitExists("/a")
}

// To kill a standalone server, use a cluster of one.
func TestClusterOfOne(t *testing.T) {
	t.Parallel()
	cl := zktest.RunCluster(t, 1, zktest.OnDisk())
	s := cl.Leader()
	s.Set("/a", "1")
	c, events := dial(t, s.Addrs(), net.DialTimeout)
	id := c.SessionID()
	cl.Kill(1)
	awaitState(t, events, zk.StateDisconnected)
	cl.Restart(1)
	awaitState(t, events, zk.StateHasSession)
	if s.Get("/a") != "1" || c.SessionID() != id {
		t.Error("not what it was")
	}
	cl.Advance(time.Minute)
	if len(s.Sessions()) != 1 {
		t.Error("a connected client expired")
	}
}

// A partitioned member should serve read-only clients if configured to.
func TestReadOnlyMode(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		s := cl.Follower()
		cl.Partition([]int{s.ID()})
		s.Wait("read-only mode", func() bool { return s.Server().Status().ReadOnly })
		cl.Heal()
		cl.WaitServing()
	}, zktest.WithConfig(func(c *server.Config) { c.ReadOnlyMode, c.TickTime = true, 200*time.Millisecond }))
}

func TestPauseAndResume(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		lead := cl.Leader()
		c := rawConnect(t, lead)
		cl.Pause(lead.ID())
		next := cl.Leader()
		next.Set("/a", "1")
		if err := c.send(proto.OpExists, &proto.ExistsRequest{Path: "/a"}); err != nil {
			t.Fatal(err)
		}
		cl.Resume(lead.ID())
		cl.WaitServing()
		lead.WaitExists("/a")
	})
}

func TestForceLeaderChange(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		for range 3 {
			old := cl.Leader()
			if lead := cl.ForceLeaderChange(); lead == old || cl.Leader() != lead {
				t.Error("the same leader")
			}
			cl.WaitServing()
		}
	})
}

func TestFaultsOnAMember(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		s := cl.Follower()
		c := rawConnect(t, s)
		c.create("/a", proto.ModeEphemeral)
		s.FailNext(zktest.Match{Op: proto.OpSetData}, proto.ErrBadVersion)
		code, err := c.call(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1})
		if code != proto.ErrBadVersion || err != nil {
			t.Error(code, err)
		}
		s.ExpireSession(c.session)
		for _, s := range cl.Servers() {
			if s.Exists("/a") {
				t.Errorf("server %d still has the znode", s.ID())
			}
		}
	})
}

// Servers that start together should form their ensemble without any wait. In fake time
// only waits take time, so we see every wait.
func TestClusterFormsWithoutWaiting(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				zktest.RunCluster(t, n)
				if d := time.Since(begun); d > 150*time.Millisecond {
					t.Errorf("waited for %v", d)
				}
			})
		})
	}
}
