// Package vitess checks Vitess's client of ZooKeeper on servers that run.
package vitess

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path"
	"sync/atomic"
	"testing"
	"time"

	"vitess.io/vitess/go/vt/topo"
	"vitess.io/vitess/go/vt/topo/test"
	_ "vitess.io/vitess/go/vt/topo/zk2topo"

	topodatapb "vitess.io/vitess/go/vt/proto/topodata"
)

// open returns a new client of the topology below root.
func open(t *testing.T, root string) *topo.Server {
	t.Helper()
	hosts := os.Getenv("ZK_HOSTS")
	if hosts == "" {
		t.Skip("ZK_HOSTS is not set")
	}
	ts, err := topo.OpenServer("zk2", hosts, path.Join(root, topo.GlobalCell))
	if err != nil {
		t.Fatal(err)
	}
	cell := &topodatapb.CellInfo{ServerAddress: hosts, Root: path.Join(root, test.LocalCellName)}
	if err := ts.CreateCellInfo(t.Context(), test.LocalCellName, cell); err != nil && !topo.IsErrType(err, topo.NodeExists) {
		t.Fatal(err)
	}
	return ts
}

// TestSuite runs Vitess's own suite for topology servers.
func TestSuite(t *testing.T) {
	root, n := fmt.Sprintf("/vitess/suite-%d", time.Now().UnixNano()), 0
	test.TopoServerTestSuite(t, t.Context(), func() *topo.Server {
		n++
		return open(t, fmt.Sprintf("%s/%d", root, n))
	}, []string{"checkList", "checkWatchRecursive"}) // zk2topo lacks them
}

// check prints a result for the caller.
func check(name string, good bool) {
	verdict := "ok"
	if !good {
		verdict = "failed"
	}
	fmt.Printf("CHECK %s %s\n", verdict, name)
}

// poll tries a condition until it is true, and returns whether it was in time.
func poll(limit time.Duration, condition func() bool) bool {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(limit)
	for !condition() {
		select {
		case <-tick.C:
		case <-deadline:
			return false
		}
	}
	return true
}

// eventually waits until condition is true, and prints whether it was in time.
func eventually(name string, condition func() bool) {
	check(name, poll(3*time.Minute, condition))
}

// TestFailover has files, a lock and an election, and waits for the file that its argument names, while the caller
// kills servers. Vitess opens a new session when its connection breaks: locks, leads and watches
// end, and it acquires them again.
func TestFailover(t *testing.T) {
	a, b := open(t, "/vitess/failover"), open(t, "/vitess/failover")
	ctx := t.Context()
	conn, err := a.ConnForCell(ctx, topo.GlobalCell)
	if err != nil {
		t.Fatal(err)
	}
	version, err := conn.Create(ctx, "things/file", []byte("one"))
	check("create a file", err == nil)
	_, err = conn.Update(ctx, "things/file", []byte("two"), version)
	check("update a file with its version", err == nil)
	_, err = conn.Update(ctx, "things/file", []byte("three"), version)
	check("refuse an old version", topo.IsErrType(err, topo.BadVersion))

	var leads atomic.Int32
	for name, ts := range map[string]*topo.Server{"a": a, "b": b} {
		go stand(t, ts, name, &leads)
	}
	eventually("a participant leads", func() bool { return leads.Load() == 1 })

	fmt.Println("WAITS")
	poll(10*time.Minute, func() bool {
		_, err := os.Stat(flag.Arg(0))
		return err == nil
	})
	eventually("read a file after servers were killed", func() bool {
		got, _, err := conn.Get(ctx, "things/file")
		return err == nil && string(got) == "two"
	})
	eventually("take and release a lock", func() bool {
		lock, err := conn.Lock(ctx, "things", "check")
		return err == nil && lock.Unlock(ctx) == nil
	})
	eventually("one participant leads", func() bool { return leads.Load() == 1 })
	eventually("a watch reports an update", func() bool {
		_, changes, err := conn.Watch(ctx, "things/file")
		if err != nil {
			return false
		}
		if _, err = conn.Update(ctx, "things/file", []byte("four"), nil); err != nil {
			return false
		}
		select {
		case d := <-changes:
			return d != nil && d.Err == nil && string(d.Contents) == "four"
		case <-time.After(30 * time.Second):
			return false
		}
	})
}

// stand takes part in an election again and again, and counts the leads that it has.
func stand(t *testing.T, ts *topo.Server, name string, leads *atomic.Int32) {
	for t.Context().Err() == nil {
		var lead context.Context
		poll(3*time.Minute, func() (elected bool) {
			lead, elected = elect(t.Context(), ts, name)
			return elected
		})
		if lead == nil {
			return
		}
		leads.Add(1)
		<-lead.Done()
		leads.Add(-1)
	}
}

// elect waits until a participant leads. The context that it returns ends with the lead.
func elect(ctx context.Context, ts *topo.Server, name string) (context.Context, bool) {
	conn, err := ts.ConnForCell(ctx, topo.GlobalCell)
	if err != nil {
		return nil, false
	}
	part, err := conn.NewLeaderParticipation("demo", name)
	if err != nil {
		return nil, false
	}
	lead, err := part.WaitForLeadership()
	return lead, err == nil
}
