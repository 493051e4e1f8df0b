package raftfsm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// TestServesNothingOldAfterARestart: a restarted member has not applied the entries in its
// log, lacks later entries, and learns of both late. It serves no client before it has
// applied every write acknowledged before it restarted.
func TestServesNothingOldAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testServesNothingOldAfterARestart)
}

func testServesNothingOldAfterARestart(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	c.startAll()
	lead, r := c.leader()
	id, _ := c.follower()
	s := r.attach(time.Hour)
	write := func(from, to int) {
		for i := from; i < to; i++ {
			if o := r.do(create(s, fmt.Sprintf("/n%d", i), 0)); o.code != proto.Ok {
				t.Fatalf("%+v", o)
			}
		}
	}
	half := cost.InShort(100, 300)
	write(0, half)
	c.settled()
	c.kill(id)
	write(half, 2*half)
	c.net.Delay(hostOf(lead), hostOf(id), 50*time.Millisecond)
	back := c.start(id)
	// The entries from before the kill are on its disk, but not applied.
	if back.exists("/n0") {
		t.Fatal("the server has applied its log: this test shows nothing")
	}
	// Like a client that connects now: first check the status, then read.
	eventually(t, "the server serves", func() bool { return back.Status().Serving })
	if !back.exists(fmt.Sprintf("/n%d", 2*half-1)) {
		t.Error("a new client is served without what was acknowledged before it came")
	}
}
