package raftfsm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// TestFarAway: two entries in flight are enough over a long way, too. In 50 ms
// there and back goes what has come together in the meantime, up to 4096
// commands, and a lone one waits for little more than one round trip.
func TestFarAway(t *testing.T) {
	t.Parallel()
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
		// How the callers fall into batches is the scheduler's choice: each waits for
		// its own and for those in flight before, four ways there and back at most.
		if lone > 3*oneWay || rate < callers/(8*oneWay.Seconds()) {
			t.Errorf("one caller: %v a write; %d callers: %.0f writes a second", lone, callers, rate)
		}
	})
}
