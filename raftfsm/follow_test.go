package raftfsm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// TestRestartUnderTheSameLeader: a follower's newest snapshot covers the LeaderStart, and
// the log after it has only commands. After a restart, the follower must still find its
// leader.
func TestRestartUnderTheSameLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		lead, _ := c.leader()
		id, r := c.follower()
		s := r.attach(time.Minute)
		for i := range 10 {
			if o := r.do(create(s, fmt.Sprintf("/n-%d", i), 0)); o.code != proto.Ok {
				t.Fatalf("%+v", o)
			}
		}
		if err := r.Node.Snapshot(); err != nil {
			t.Fatal(err)
		}
		epoch := r.Status().Epoch
		c.stop(id)
		r = c.start(id)
		if st := r.awaitServed(); st.Leader != lead || st.Epoch != epoch {
			t.Fatalf("%+v; the leader was %d, the epoch %d", st, lead, epoch)
		}
		s = r.attach(time.Minute)
		if o := r.do(create(s, "/after", 0)); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.settled()
	})
}
