package raftfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// TestQuietEnsemble: in an otherwise idle ensemble, a write through a follower needs
// four message delays and no more: to the leader, to the followers and back, and the
// notice that it is committed. No step waits for a timer of Raft, whatever the pause
// before the write and whichever follower is slower.
func TestQuietEnsemble(t *testing.T) {
	t.Parallel()
	for _, far := range cost.InShort([]bool{true}, []bool{false, true}) {
		t.Run(fmt.Sprintf("far=%t", far), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				const oneWay, more = time.Millisecond, 3 * time.Millisecond
				writes := cost.InShort(30, 300)
				c := newCluster(t, 3)
				c.startAll()
				lead, _ := c.leader()
				id, r := c.follower()
				s := r.attach(time.Hour)
				r.setLive(s.ID)
				for _, a := range c.list {
					for _, b := range c.list {
						slow := a.ID == id || b.ID == id
						d := oneWay
						if slow == far {
							d += more
						}
						if a.ID != b.ID {
							c.net.Delay(hostOf(a.ID), hostOf(b.ID), d)
						}
					}
				}
				time.Sleep(time.Minute) // until no message is in flight
				var worst time.Duration
				for i := range writes {
					time.Sleep(time.Second + time.Duration(i)*3331*time.Microsecond) // up to 2 s
					start := time.Now()
					if o := r.do(create(s, fmt.Sprintf("/lone-%d", i), 0)); o.code != proto.Ok {
						t.Fatal(o.code)
					}
					worst = max(worst, time.Since(start))
				}
				if now, _ := c.leader(); now != lead {
					t.Fatal("another leader: nothing is shown")
				}
				t.Logf("the slowest of %d writes took %v", writes, worst)
				// Two more delays when one of Raft's own messages is in flight.
				limit := 6 * oneWay
				if far {
					limit += 6 * more
				}
				if worst > limit {
					t.Errorf("a lone write took %v, more than its ways, %v", worst, limit)
				}
			})
		})
	}
}
