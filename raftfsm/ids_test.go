package raftfsm

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
)

// TestIDsAtTheEnds runs ensembles with the ids 0 and 255. They form, accept commands
// through every server, lose the leader, restart on their disks, and remove and add a
// server.
func TestIDsAtTheEnds(t *testing.T) {
	t.Parallel()
	for _, ids := range [][]uint64{{0, 1, 2}, {253, 254, 255}, {0, 128, 255}} {
		t.Run(fmt.Sprint(ids), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { testIDsAtTheEnds(t, ids) })
		})
	}
}

func testIDsAtTheEnds(t *testing.T, ids []uint64) {
	c := clusterOf(t, ids...).onDisk()
	c.startAll()
	if id, _ := c.leader(); id != ids[2] {
		t.Errorf("server %d leads a fresh ensemble; ZooKeeper's would be %d", id, ids[2])
	}
	seen := make(map[int64]bool)
	c.eachOwns(ids, "/first", seen)
	c.settled()

	// The lowest id leads, and accepts commands from the others as well as its own.
	for _, id := range ids[1:] {
		c.stop(id)
	}
	c.start(ids[1])
	c.rigs[ids[0]].awaitServed()
	c.rigs[ids[1]].awaitServed()
	c.eventually("the lowest leads", func() bool {
		lead, r := c.leader()
		if lead != ids[0] {
			_ = r.Transfer(t.Context())
		}
		return lead == ids[0]
	})
	c.rigs[ids[1]].awaitServed()
	if s := c.rigs[ids[1]].Status(); s.Role != Follower || s.Leader != ids[0] {
		t.Errorf("server %d under leader %d: %+v", ids[1], ids[0], s)
	}
	c.start(ids[2])
	c.rigs[ids[2]].awaitServed()
	c.eachOwns(ids, "/second", seen)

	// A snapshot must carry over the leader, too.
	c.stop(ids[2])
	for _, r := range c.rigs {
		r.compact()
	}
	c.start(ids[2])
	c.rigs[ids[2]].awaitServed()
	c.eachOwns(ids, "/third", seen)
	c.settled()

	r := c.rigs[ids[1]]
	s := r.attach(time.Minute)
	if o := r.do(reconfigure(s, "", fmt.Sprint(ids[0]), "", -1)); o.code != proto.Ok {
		t.Fatalf("removing %d: %+v", ids[0], o)
	}
	c.awaitIDs(fmt.Sprintf("%d,%d voting %[1]d,%[2]d others ", ids[1], ids[2]))
	if o := c.sure(r, &s, func(s session.Session) command.Command { return reconfigure(s, serverLine(ids[0]), "", "", -1) }); o.code != proto.Ok {
		t.Fatalf("adding %d: %+v", ids[0], o)
	}
	c.rigs[ids[0]].awaitServed()
	if text := c.rigs[ids[0]].configText(); !strings.HasPrefix(text, serverLine(ids[0])+"\n") {
		t.Errorf("the membership is %q", text)
	}
	c.eachOwns(ids, "/fourth", seen)
	c.settled()
}

// eachOwns creates a session and its ephemeral znode through every server.
func (c *cluster) eachOwns(ids []uint64, path string, seen map[int64]bool) {
	c.t.Helper()
	for _, id := range ids {
		r := c.rigs[id]
		s := c.surelyAttached(r, time.Minute)
		if s.ID == 0 || uint64(s.ID)>>56 != id || seen[s.ID] {
			c.t.Fatalf("session %#x of server %d", s.ID, id)
		}
		seen[s.ID] = true
		own := fmt.Sprintf("%s-%d", path, id)
		o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, own, 1) })
		if o.code != proto.Ok || o.stat.EphemeralOwner != s.ID {
			c.t.Fatalf("an ephemeral znode of session %#x: %+v", s.ID, o)
		}
	}
}

// TestListThatCannotBeRead: an invalid list of servers is refused before it gets into the
// log, because no server could start with such a list.
func TestListThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, m := range []membership.Member{
		{ID: 256, QuorumAddr: "a:2888", ElectionAddr: "a:3888"},
		{ID: 2, QuorumAddr: "a", ElectionAddr: "a:3888"},
		{ID: 2, QuorumAddr: "a:2888", ElectionAddr: "a:2888"},
		{ID: 1, QuorumAddr: "a:2888", ElectionAddr: "a:3888"}, // a second server 1
	} {
		r := newRecorder()
		_, err := New(Config{ID: 1, Members: []membership.Member{memberAt(1), m}, Memory: true, Handler: r})
		if err == nil {
			t.Errorf("%+v is accepted: %s", m, bytes.TrimSpace([]byte(m.Line())))
		}
	}
}
