package raftfsm

import (
	"fmt"
	"testing"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
)

// TestBackBySnapshotAfterLostPackets restarts a follower that needs a snapshot while the
// leader's large packets to it are lost. It serves soon after they arrive again: Raft's
// leader doesn't sleep after failures, and the follower gets entries right after the
// snapshot.
func TestBackBySnapshotAfterLostPackets(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		lengths := []time.Duration{0, 8 * time.Second, 63 * time.Second}
		if testing.Short() {
			lengths = lengths[2:]
		}
		for round, length := range lengths {
			lead, l := c.leader()
			id, _ := c.follower()
			c.kill(id)
			s := c.surelyAttached(l, time.Hour)
			for i := range 20 {
				c.sure(l, &s, func(s session.Session) command.Command { return large(s, fmt.Sprintf("/away-%d-%d", round, i)) })
			}
			l.compact()
			c.awaitClosed(id)
			if length > 0 {
				c.net.Lose(hostOf(lead), hostOf(id), 1000)
			}
			f := c.start(id)
			time.Sleep(length)
			if length > 0 && f.Status().Serving {
				t.Fatal("it serves, and has got nothing")
			}
			c.net.Heal(hostOf(lead), hostOf(id))
			began := time.Now()
			f.awaitServed()
			if took := time.Since(began); took > 2500*time.Millisecond {
				t.Errorf("it served %v after a loss of large packets for %v", took, length)
			}
			if now, _ := c.leader(); now != lead {
				t.Errorf("server %d leads instead of %d", now, lead)
			}
			c.settled()
		}
	})
}
