package raftfsm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// TestStoppedAfterAnInstalledSnapshot: a follower was stopped when the leader's snapshot
// was on its disk but not yet installed. Its log ends before the snapshot, so the
// follower must drop the log before it can append entries.
func TestStoppedAfterAnInstalledSnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		short := func(cfg *Config) { cfg.Log.SnapTrailing = 1 } // so that the leader can't send the missing entries
		for _, m := range c.list {
			c.start(m.ID, short)
		}
		for _, r := range c.rigs {
			r.awaitServed()
		}
		lead, l := c.leader()
		id, _ := c.follower()
		c.stop(id)
		s := l.attach(time.Minute)
		for i := range 20 {
			if o := l.do(create(s, fmt.Sprintf("/n-%d", i), 0)); o.code != proto.Ok {
				t.Fatalf("%+v", o)
			}
		}
		if err := l.Node.Snapshot(); err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(c.dir(lead), "snap", "snapshots")
		if err := os.CopyFS(filepath.Join(c.dir(id), "snap", "snapshots"), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		r := c.start(id, short)
		r.awaitServed()
		s = r.attach(time.Minute)
		if o := r.do(create(s, "/after", 0)); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.settled()
	})
}

// TestSecondSnapshotDuringTheFirst: a follower gets two snapshots in a row. The Raft
// instance that installed the first one is shut down after it has written the second to
// disk and before it has restored it. The next instance assumes that the newest snapshot
// is applied.
func TestSecondSnapshotDuringTheFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		lead, l := c.leader()
		id, r := c.follower()
		c.net.Partition([]string{hostOf(id)}, []string{"s1", "s2", "s3"})
		s := l.attach(time.Minute)
		for i := range 20 {
			if o := l.do(create(s, fmt.Sprintf("/n-%d", i), 0)); o.code != proto.Ok {
				t.Fatalf("%+v", o)
			}
		}
		if err := l.Node.Snapshot(); err != nil {
			t.Fatal(err)
		}
		from := filepath.Join(c.dir(lead), "snap", "snapshots")
		if err := os.CopyFS(filepath.Join(c.dir(id), "snap", "snapshots"), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
		r.member().SnapshotInstalled() // as after the first snapshot
		c.net.Rejoin([]string{hostOf(id)}, []string{"s1", "s2", "s3"})
		c.eventually("what only the snapshot holds", func() bool { return r.exists("/n-19") })
		r.awaitServed()
		c.settled()
	})
}
