package raftfsm

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/session"
)

// newer makes the server one of the next version.
func newer(c *Config) { c.level = command.Level + 1 }

// TestMixedVersions upgrades an ensemble with an observer, one server after another,
// while a client writes. The log contains no entry of the new behaviour before the last
// server knows it, whichever server leads in between.
func TestMixedVersions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testMixedVersions)
}

func testMixedVersions(t *testing.T) {
	c := newCluster(t, 4).onDisk()
	c.list[3].Observer = true
	c.startAll()
	at := func(id uint64) uint32 { now, _ := c.rigs[id].Level(); return now }
	writes := 0
	write := func(id uint64) {
		r := c.rigs[id]
		s := r.attach(time.Hour)
		writes++
		if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, fmt.Sprint("/w", writes), 0) }); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
	}
	for _, id := range []uint64{3, 1, 2} { // the leader first: servers of the old version succeed it
		c.stop(id)
		write(id%3 + 1)
		c.start(id, newer).awaitServed()
		write(id)
	}
	time.Sleep(10 * ensemble.LevelEvery)
	for id := range c.rigs {
		if now := at(id); now != command.Level {
			t.Fatalf("server %d is at level %d while the observer knows only %d", id, now, command.Level)
		}
	}
	c.stop(4)
	time.Sleep(10 * ensemble.LevelEvery)
	if now := at(1); now != command.Level {
		t.Fatalf("level %d while no server knows what the observer knows", now)
	}
	c.start(4, newer).awaitServed()
	c.eventually("the new level everywhere", func() bool {
		for id := range c.rigs {
			if at(id) != command.Level+1 {
				return false
			}
		}
		return true
	})
	write(4)
	c.settled()

	// The level can't be lowered, neither with the state nor with an empty directory.
	_, lead := c.leader()
	lead.reconfigureOK(t, "", "4")
	c.stop(4)
	c.wipe(4)
	var log logText
	c.start(4, log.tune, func(cfg *Config) { cfg.Members = append(c.list[:3:3], memberAt(4)) })
	c.eventually("a refusal", func() bool {
		return log.contains(fmt.Sprint("the ensemble is at behaviour level ", command.Level+1)) && log.contains("upgrade it")
	})
	c.stop(1)
	old := c.start(1)
	select {
	case err := <-old.Err():
		if !strings.Contains(err.Error(), "behaviour level") {
			t.Errorf("stopped with %v", err)
		}
	case <-time.After(patience):
		t.Errorf("an old server runs on the log of a newer one: %+v", old.Status())
	}
}

// reconfigureOK changes the membership through this server.
func (r *rig) reconfigureOK(t *testing.T, joining, leaving string) {
	t.Helper()
	if o := r.do(reconfigure(r.attach(time.Hour), joining, leaving, "", -1)); o.code != proto.Ok {
		t.Fatalf("reconfig +%s -%s: %+v", joining, leaving, o)
	}
}

// TestUnknownLevel feeds an entry with a level above the one that the machine knows.
func TestUnknownLevel(t *testing.T) {
	t.Parallel()
	r := newReplica(t)
	l := newLeader(1, 0)
	r.mustFeed(t, l.begin())
	before := r.Machine.Index
	err := r.feed(l.batch(command.Command{Kind: command.KindRaise, Body: []byte{0, 0, 0, command.Level + 1}}))
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("behaviour level %d, this server knows %d", command.Level+1, command.Level)) || r.Machine.Index != before {
		t.Errorf("%v, index %d", err, r.Machine.Index)
	}
}
