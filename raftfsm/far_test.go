package raftfsm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// TestFarAway: two entries in flight suffice over a long distance, too. With a round trip
// of 50 ms, an entry carries all commands that came in the meantime, up to 4096, and a
// single command needs little more than one round trip.
func TestFarAway(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seconds with the race detector; not with -short")
	}
	synctest.Test(t, func(t *testing.T) {
		const oneWay, callers, rounds = 25 * time.Millisecond, 2000, 10
		c := newCluster(t, 3)
		c.startAll()
		_, r := c.leader()
		s := r.attach(time.Minute)
		for _, a := range c.list {
			for _, b := range c.list {
				if a.ID != b.ID {
					c.net.Delay(hostOf(a.ID), hostOf(b.ID), oneWay)
				}
			}
		}
		start := time.Now()
		for i := range rounds {
			if o := r.do(create(s, fmt.Sprintf("/lone-%d", i), 0)); o.code != proto.Ok {
				t.Fatal(o.code)
			}
		}
		lone := time.Since(start) / rounds
		start = time.Now()
		waiting := make(chan chan outcome, callers)
		for i := range callers * rounds {
			if len(waiting) == callers {
				r.get(<-waiting)
			}
			waiting <- r.send(create(s, fmt.Sprintf("/many-%d", i), 0))
		}
		for len(waiting) > 0 {
			r.get(<-waiting)
		}
		rate := float64(callers*rounds) / time.Since(start).Seconds()
		t.Logf("one caller: %v a write; %d callers: %.0f writes a second", lone, callers, rate)
		// The scheduler determines how the callers fall into batches. Each caller waits for
		// its own batch and for those in flight before it, four round trips at most.
		if lone > 3*oneWay || rate < callers/(8*oneWay.Seconds()) {
			t.Errorf("one caller: %v a write; %d callers: %.0f writes a second", lone, callers, rate)
		}
	})
}
