package raftfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/proto"
)

func TestEnsembleForms(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	start := time.Now()
	c.startAll()
	t.Logf("three servers serve after %v", time.Since(start))
	if id, _ := c.leader(); id != 3 {
		t.Errorf("server %d leads a fresh ensemble; ZooKeeper's would be 3", id)
	}
	for id, r := range c.rigs {
		s := r.attach(time.Minute)
		if s.ID>>56 != int64(id) {
			t.Errorf("session %#x of server %d", s.ID, id)
		}
		for i := range 20 {
			if o := r.do(create(s, fmt.Sprintf("/from-%d-%d", id, i), 0)); o.code != proto.Ok {
				t.Fatalf("server %d: %+v", id, o)
			}
		}
	}
	c.settled()
	for id, r := range c.rigs {
		if st := r.Status(); st.Epoch != 1 || st.Leader != 3 {
			t.Errorf("server %d: %+v", id, st)
		}
	}
}
