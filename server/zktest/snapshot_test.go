package zktest_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

func TestSnapshotAndReset(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t)
	zs.Seed(map[string]string{"/kept": "1", "/queue": ""})
	zs.Set("/kept", "2")
	owner := rawConnect(t, zs)
	owner.create("/kept/ephemeral", proto.ModeEphemeral)
	before := zs.Stat("/kept")
	snap := zs.Snapshot()
	last := int64(0)
	for range 3 {
		c := connect(t, zs)
		if _, err := c.Set("/kept", []byte("x"), before.Version); err != nil {
			t.Fatal(err)
		}
		path, err := c.Create("/queue/n-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		if err != nil || path != "/queue/n-0000000000" {
			t.Errorf("%q %v", path, err)
		}
		create(t, c, "/new", "", 0)
		zs.FailNext(zktest.Match{}, proto.ErrNoAuth)
		if mzxid := zs.Stat("/new").Czxid; mzxid <= last {
			t.Errorf("zxid %#x after %#x", mzxid, last)
		} else {
			last = mzxid
		}
		zs.Reset(snap)
		if zs.Exists("/new") || len(zs.Children("/queue")) > 0 || zs.Exists("/kept/ephemeral") || zs.Get("/kept") != "2" {
			t.Errorf("after Reset:\n%s", zs.Dump())
		}
		if got := zs.Stat("/kept"); got.Version != before.Version || got.Mzxid != before.Mzxid || got.Ctime != before.Ctime {
			t.Errorf("%+v, was %+v", got, before)
		}
		if got := zs.Watches(); len(got) != 0 || len(zs.RequestCounts()) != 0 {
			t.Errorf("%+v", got)
		}
		c.Close()
	}
}

// On disk, the restored state should survive a restart.
func TestResetOnDisk(t *testing.T) {
	t.Parallel()
	zs := zktest.Run(t, zktest.OnDisk())
	zs.Seed(map[string]string{"/a/b": "1", "/a/c": "2"})
	snap := zs.Snapshot()
	for range 2 {
		zs.Delete("/a")
		zs.Set("/new", "3")
		zs.Reset(snap)
		zs.Set("/after", "4")
		zs.Kill()
		zs.Restart()
		if zs.Exists("/new") || zs.Get("/a/b") != "1" || zs.Get("/after") != "4" {
			t.Fatalf("after a restart:\n%s", zs.Dump())
		}
	}
}

// In a cluster, we should reset all members, including one that is down.
func TestResetOfACluster(t *testing.T) {
	inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
		zs := cl.Follower()
		zs.Seed(map[string]string{"/a/b": "1", "/a/c": "2", "/q": ""})
		zs.Set("/a", "top")
		c := rawConnect(t, zs)
		c.create("/mine", proto.ModeEphemeral)
		before := zs.Stat("/a")
		snap := zs.Snapshot()
		for range 2 {
			for range 5 {
				c.create("/q/n-", proto.ModePersistentSequential)
			}
			zs.Set("/a/b", "other")
			zs.Delete("/a/c")
			zs.Set("/new/deep", "3")
			away := cl.Follower()
			cl.Partition([]int{away.ID()})
			lead := cl.Leader()
			lead.Reset(snap)
			cl.Heal()
			cl.WaitServing()
			for _, s := range cl.Servers() {
				s.WaitGone("/new")
				st := s.Stat("/a")
				if s.Get("/a/b") != "1" || s.Get("/a/c") != "2" || s.Exists("/mine") || len(s.Children("/q")) > 0 || st.Version != before.Version || s.Get("/a") != "top" {
					t.Fatalf("server %d, %+v was %+v:\n%s", s.ID(), st, before, s.Dump())
				}
			}
			c = rawConnect(t, cl.Leader())
			c.create("/q/n-", proto.ModePersistentSequential)
			if got := cl.Leader().Children("/q"); len(got) != 1 || got[0] != "n-0000000000" {
				t.Errorf("the sequence continues with %v", got)
			}
		}
	})
}
