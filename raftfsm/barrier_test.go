package raftfsm

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A reply that a follower sent before the leader's question proves nothing, however late
// it arrives: in the meantime another server may have become the leader.
func TestAnOldContactConfirmsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		c.readyToRestore() // raising the level is the last entry that the leader itself proposes
		id, lead := c.leader()
		follower, _ := c.follower()
		before := lead.replica.Raft().LastIndex()
		for _, r := range c.rigs {
			if err := r.Barrier(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for other := range c.rigs {
			if other != id {
				c.net.Hold(hostOf(other), hostOf(id)) // replies stay in the buffers
			}
		}
		time.Sleep(200 * time.Millisecond)
		for other := range c.rigs {
			if other != id {
				c.net.Hold(hostOf(id), hostOf(other)) // and no requests get through
			}
		}
		done := make(chan error, 2)
		for _, r := range []*rig{lead, c.rigs[follower]} {
			go func() { done <- r.Barrier(t.Context()) }()
		}
		synctest.Wait()
		for other := range c.rigs {
			c.net.Heal(hostOf(other), hostOf(id))
		}
		time.Sleep(200 * time.Millisecond)
		select {
		case err := <-done:
			t.Errorf("confirmed by answers from before the question: %v", err)
		default:
		}
		for other := range c.rigs {
			c.net.Heal(hostOf(id), hostOf(other))
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if after := lead.replica.Raft().LastIndex(); after != before {
			t.Errorf("the log grew from %d to %d", before, after)
		}
	})
}

// Without a quorum, a barrier waits until its context ends.
func TestABarrierWithoutAQuorum(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		id, lead := c.leader()
		for other := range c.rigs {
			if other != id {
				c.net.Partition([]string{hostOf(id)}, []string{hostOf(other)})
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := lead.Barrier(ctx); err == nil {
			t.Error("confirmed by no server")
		}
	})
}
