package zktest_test

import (
	"testing"
	"testing/synctest"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// spoil is a disk fault.
type spoil func(*zktest.Server) func()

func spoils() map[string]spoil {
	return map[string]spoil{"full": (*zktest.Server).FillDisk, "fsync": (*zktest.Server).FailFsync}
}

// If the disk fails, the server should acknowledge no write. After a restart with a healthy
// disk, it should have everything that it acknowledged.
func TestDiskOfAServerFails(t *testing.T) {
	t.Parallel()
	for name, fault := range spoils() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				zs := zktest.Run(t, zktest.OnDisk())
				c := rawConnect(t, zs)
				c.create("/before", proto.ModePersistent)
				heal := fault(zs)
				if err := c.send(proto.OpCreate, &proto.CreateRequest{Path: "/never", ACL: proto.OpenACL()}); err != nil {
					t.Fatal(err)
				}
				if b, err := c.frame(); err == nil {
					t.Errorf("a server without a disk answered a write: %x", b)
				}
				heal()
				zs.Kill()
				zs.Restart()
				rawConnect(t, zs).create("/after", proto.ModePersistent)
				if !zs.Exists("/before") {
					t.Errorf("acknowledged data is lost:\n%s", zs.Dump())
				}
			})
		})
	}
}

// If a leader's disk fails, it should step down, and the other servers should continue.
func TestDiskOfTheLeaderFails(t *testing.T) {
	for name, fault := range spoils() {
		t.Run(name, func(t *testing.T) {
			inCluster(t, 3, func(t *testing.T, cl *zktest.Cluster) {
				old := cl.Leader()
				c := rawConnect(t, old)
				heal := fault(old)
				if err := c.send(proto.OpCreate, &proto.CreateRequest{Path: "/lost", ACL: proto.OpenACL()}); err != nil {
					t.Fatal(err)
				}
				old.Wait("another leader", func() bool { return cl.Leader() != old })
				cl.Leader().Set("/a", "1")
				heal()
				old.Kill()
				old.Restart()
				old.WaitExists("/a")
			}, zktest.OnDisk())
		})
	}
}
