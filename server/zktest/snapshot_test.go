package zktest_test

import (
	"fmt"
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

func BenchmarkReset1000(b *testing.B) {
	zs := zktest.Run(b)
	nodes := make(map[string]string)
	for i := range 1000 {
		nodes[fmt.Sprintf("/a%d/b%d", i/10, i)] = "some data"
	}
	zs.Seed(nodes)
	snap := zs.Snapshot()
	b.ResetTimer()
	for b.Loop() {
		zs.Reset(snap)
	}
}

func BenchmarkRun(b *testing.B) {
	for b.Loop() {
		zs := zktest.Run(b)
		c := rawConnect(b, zs)
		c.create("/a", proto.ModePersistent)
		c.nc.Close()
		zs.Close()
	}
}

func BenchmarkRunTCP(b *testing.B) {
	for b.Loop() {
		zs := zktest.Run(b)
		c := rawTCP(b, zs)
		c.create("/a", proto.ModePersistent)
		c.nc.Close()
		zs.Close()
	}
}

func BenchmarkRunCluster3(b *testing.B) {
	for b.Loop() {
		cl := zktest.RunCluster(b, 3)
		b.StopTimer()
		cl.Close()
		b.StartTimer()
	}
}
