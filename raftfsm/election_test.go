package raftfsm

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tests/kit/cost"
)

// TestKilledEnsembleNeedsNoTimers kills all servers and restarts them. No server has to
// wait for Raft's timers, which run for at least a second, and the server that missed the
// last writes doesn't lead.
func TestKilledEnsembleNeedsNoTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		_, r := c.leader()
		s := r.attach(time.Hour)
		c.kill(3) // the highest id would be the first choice
		c.sure(c.rigs[1], &s, func(s session.Session) command.Command { return create(s, "/late", 0) })
		c.settled()
		c.kill(1)
		c.kill(2)
		for id := uint64(1); id <= 3; id++ {
			c.awaitClosed(id)
		}
		began := time.Now()
		c.startAll()
		if took := time.Since(began); took >= ensemble.ElectionTimeout {
			t.Errorf("the servers serve %v after they were started", took)
		}
		if id, r := c.leader(); id == 3 || !r.exists("/late") {
			t.Errorf("server %d leads", id)
		}
	})
}

// TestKilledLeaderIsReplacedAtOnce kills one leader after the other. In fake time, disks
// and processors need no time, so the test measures only timeouts.
func TestKilledLeaderIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 5).onDisk()
		c.startAll()
		for range cost.InShort(5, 20) {
			id, _ := c.leader()
			began := time.Now()
			c.kill(id)
			next, _ := c.leader()
			if took := time.Since(began); took >= ensemble.ElectionTimeout/4 {
				t.Errorf("server %d leads %v after server %d was killed", next, took, id)
			}
			c.start(id).awaitServed()
			c.settled()
		}
	})
}
