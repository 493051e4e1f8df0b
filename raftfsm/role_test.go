package raftfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// TestRoleFollowsTheMembership changes the role of every server there and back. Its
// Status and its leader's view follow within two seconds, and it keeps serving.
func TestRoleFollowsTheMembership(t *testing.T) {
	for id := cost.InShort[uint64](3, 1); id <= 4; id++ {
		t.Run(fmt.Sprint("server ", id), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				c := newCluster(t, 4)
				c.startAll() // 4 leads
				asked := c.rigs[id%4+1]
				s := asked.attach(time.Hour)
				for _, observer := range []bool{true, false, true} {
					line := serverLine(id)
					if observer {
						line = observerLine(id)
					}
					if o := asked.do(reconfigure(s, line, "", "", -1)); o.code != proto.Ok {
						t.Fatalf("%+v", o)
					}
					time.Sleep(2 * time.Second)
					c.hasRole(id, observer)
				}
			})
		})
	}
}

// hasRole checks a server's role in its own Status and in its leader's view.
func (c *cluster) hasRole(id uint64, observer bool) {
	c.t.Helper()
	want := Follower
	if observer {
		want = Observer
	}
	if s := c.rigs[id].Status(); s.Role != want || !s.Serving {
		c.t.Errorf("server %d is to be an observer: %t, and says %+v", id, observer, s)
	}
	if m := c.rigs[id].Self(); m.Observer != observer {
		c.t.Errorf("server %d is to be an observer: %t, and its line is %+v", id, observer, m)
	}
	_, lead := c.leader()
	for _, l := range lead.Learners() {
		if l.Observer != (observer && l.ID == id) || !l.Synced {
			c.t.Errorf("server %d is to be an observer: %t, and its leader says %+v", id, observer, l)
		}
	}
}
