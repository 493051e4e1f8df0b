package raftfsm

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/session"
)

func TestEnsembleForms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testEnsembleForms)
}

func testEnsembleForms(t *testing.T) {
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

// TestLeaderKill kills the leader under load: another server becomes the leader, and both
// remaining servers have every acknowledged write.
func TestLeaderKill(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testLeaderKill)
}

func testLeaderKill(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	dead, _ := c.leader()
	_, r := c.follower()
	s := r.attach(time.Minute)
	acked := make(map[string]bool)
	for i := range 200 {
		if i == 100 {
			start := time.Now()
			c.kill(dead)
			path := "/after-the-kill"
			if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, path, 0) }); o.code != proto.Ok && o.code != proto.ErrNodeExists {
				t.Fatalf("%+v", o)
			}
			t.Logf("the first write after the kill was applied after %v", time.Since(start))
			acked[path] = true
		}
		path := fmt.Sprintf("/n-%d", i)
		if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, path, 0) }); o.code != proto.Ok && o.code != proto.ErrNodeExists {
			t.Fatalf("%s: %+v", path, o)
		}
		acked[path] = true
	}
	for _, r := range c.rigs {
		r.awaitServed()
	}
	c.settled()
	for id, r := range c.rigs {
		for path := range acked {
			if !r.exists(path) {
				t.Errorf("server %d lost %s", id, path)
			}
		}
		if st := r.Status(); st.Epoch < 2 || st.Leader == dead {
			t.Errorf("server %d: %+v", id, st)
		}
	}
}

// TestSessionMoves: a client moves to another server while commands are in flight.
// Commands from the old connection no longer have an effect.
func TestSessionMoves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSessionMoves)
}

func testSessionMoves(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	lead, leader := c.leader()
	id, a := c.follower()
	s := a.attach(time.Minute)
	if o := a.do(create(s, "/lock", flagEphemeral)); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	c.net.Hold(hostOf(id), hostOf(lead))
	late := a.send(create(s, "/late", 0))
	moved := leader.reattach(s)
	if moved.code != proto.Ok || moved.attached.Gen <= s.Gen || uint64(moved.attached.Server) != lead {
		t.Fatalf("moving the session: %+v", moved)
	}
	c.net.Heal(hostOf(id), hostOf(lead))
	select {
	case o := <-late:
		if o.code != proto.ErrSessionMoved {
			t.Errorf("a command of the connection that was left: %+v", o)
		}
	default: // given up in the meantime, or not applied yet
	}
	if o := leader.do(create(moved.attached, "/here", 0)); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	if o := a.do(command.Command{Kind: command.KindSync, Session: s.ID, Gen: s.Gen}); o.code != proto.Ok && o.code != proto.ErrSessionMoved {
		t.Errorf("sync on the old server: %+v", o)
	}
	c.settled()
	if a.exists("/late") || !a.exists("/lock") || !a.exists("/here") {
		t.Errorf("late %t, lock %t, here %t", a.exists("/late"), a.exists("/lock"), a.exists("/here"))
	}
}

// TestPartition partitions the leader from the others: the others continue, the old
// leader's contact is no longer confirmed, and after the partition it follows again.
func TestPartition(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testPartition)
}

func testPartition(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	old, was := c.leader()
	var rest []string
	var r *rig
	for id, x := range c.rigs {
		if id != old {
			rest, r = append(rest, hostOf(id)), x
		}
	}
	s := r.attach(time.Minute)
	alone := was.attach(time.Minute)
	cut := time.Now()
	c.net.Partition([]string{hostOf(old)}, rest)
	lost := was.send(create(alone, "/lost", 0))
	if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, "/majority", 0) }); o.code != proto.Ok && o.code != proto.ErrNodeExists {
		t.Fatalf("%+v", o)
	}
	was.recorder.wait(t, "the old leader gives up", func() bool { return len(was.lost) > 0 })
	if at := was.Confirmed(); at.After(cut.Add(time.Second)) {
		t.Errorf("the old leader believes to have led %v after it was cut off", at.Sub(cut))
	}
	if len(lost) > 0 {
		t.Error("the old leader acknowledged a write alone")
	}
	c.net.Rejoin([]string{hostOf(old)}, rest)
	c.eventually("the old leader is back", func() bool { return was.exists("/majority") && was.Status().Serving })
	c.settled()
	if was.exists("/lost") {
		t.Error("a write of a deposed leader came through")
	}
}

// TestRollingRestart restarts the servers one at a time and then all at once. No write is
// lost, and a server serves only after it has caught up.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testRollingRestart)
}

func testRollingRestart(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	c.startAll()
	_, r := c.leader()
	s := r.attach(time.Hour)
	for i := range 50 {
		r.do(create(s, fmt.Sprintf("/n-%d", i), 0))
	}
	for id := uint64(1); id <= 3; id++ {
		if err := c.rigs[id].Close(); err != nil {
			t.Fatalf("server %d: %v", id, err)
		}
		delete(c.rigs, id)
		c.leader()
		r := c.start(id)
		r.awaitServed()
		if !r.exists("/n-49") {
			t.Fatalf("server %d serves without what was committed", id)
		}
	}
	c.settled()
	for id, r := range c.rigs {
		if err := r.Close(); err != nil {
			t.Fatalf("server %d: %v", id, err)
		}
	}
	clear(c.rigs)
	c.startAll()
	c.settled()
	for id, r := range c.rigs {
		if !r.exists("/n-49") {
			t.Errorf("server %d lost what was committed", id)
		}
	}
}
