package raftfsm

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/internal/raftlog"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/session"
)

// logText collects what servers log.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) contains(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.b.String(), s)
}

func (l *logText) tune(c *Config) { c.Logger = slog.New(slog.NewTextHandler(l, nil)) }

// neverServes checks for the duration d that no server has a leader.
func (c *cluster) neverServes(d time.Duration) {
	c.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for id, r := range c.rigs {
			if s := r.Status(); s.Role != Looking {
				c.t.Fatalf("server %d: %+v", id, s)
			}
		}
	}
}

// TestFormationNeedsAll: with NeedsAll, two servers of three wait for the third, and then
// all three form an ensemble.
func TestFormationNeedsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := func(cfg *Config) { cfg.NeedsAll = true }
		c := newCluster(t, 3)
		c.start(1, all)
		c.start(3, all)
		c.neverServes(20 * time.Second)
		c.start(2, all)
		for id, r := range c.rigs {
			r.awaitServed()
			if r.replica.Identity.RaftID != membership.FounderID(id) {
				t.Errorf("server %d is %q and no founder", id, r.replica.Identity.RaftID)
			}
		}
	})
}

// TestFormationNeedsAMajority: one server of three waits, two form the ensemble, and the
// third is admitted when it starts.
func TestFormationNeedsAMajority(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testFormationNeedsAMajority)
}

func testFormationNeedsAMajority(t *testing.T) {
	c := newCluster(t, 3)
	c.start(1)
	c.neverServes(500 * time.Millisecond)
	c.start(2)
	for _, r := range c.rigs {
		r.awaitServed()
	}
	if id, _ := c.leader(); id != 2 {
		t.Errorf("server %d leads", id)
	}
	s := c.rigs[1].attach(time.Minute)
	c.rigs[1].do(create(s, "/a", 0))
	late := c.start(3)
	late.awaitServed()
	c.settled()
	if id := late.replica.Identity.RaftID; id == "3" {
		t.Errorf("a server that was not there when the ensemble formed has the ServerID %q of one that was", id)
	}
	// Server 3 has a vote, so one of the others may stop.
	c.eventually("a vote for server 3", func() bool { return c.voters() == 3 })
	sl := late.attach(time.Minute)
	c.stop(2)
	if o := c.sure(late, &sl, func(s session.Session) command.Command { return create(s, "/b", 0) }); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
}

// TestFormationRefusesDifferentLists: if the lists differ, no server becomes leader, and
// the log says why.
func TestFormationRefusesDifferentLists(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testFormationRefusesDifferentLists)
}

func testFormationRefusesDifferentLists(t *testing.T) {
	c := newCluster(t, 3)
	var log logText
	c.start(1, log.tune)
	c.start(2, log.tune, func(cfg *Config) { cfg.Members = append([]membership.Member{memberAt(4)}, cfg.Members...) })
	c.start(3, log.tune)
	c.eventually("a message about the lists", func() bool { return log.contains("has a different list of servers") })
	c.neverServes(time.Second)
}

// TestWipedMajorityForgetsNothing: two of three servers lost their disks. They must not
// form a new ensemble while the third still has the data, nor elect a leader without the
// data.
func TestWipedMajorityForgetsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testWipedMajorityForgetsNothing)
}

func testWipedMajorityForgetsNothing(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	c.startAll()
	_, r := c.leader()
	s := r.attach(time.Hour)
	r.do(create(s, "/precious", 0))
	c.settled()
	for id := uint64(1); id <= 3; id++ {
		c.kill(id)
	}
	c.wipe(2)
	c.wipe(3)
	for id := uint64(1); id <= 3; id++ {
		c.start(id)
	}
	c.neverServes(3 * time.Second)
}

// TestWipedMemberJoinsAgain: right after a commit by A and B, B loses its disk. B and C,
// which lacks the commit, must not form a majority. After A is back, B joins again
// automatically.
func TestWipedMemberJoinsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testWipedMemberJoinsAgain)
}

func testWipedMemberJoinsAgain(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	c.startAll()
	const a, b, behind = 3, 2, 1
	c.kill(behind)
	r := c.rigs[a]
	s := c.rigs[a].attach(time.Hour)
	for _, path := range []string{"/x", "/y"} {
		if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, path, 0) }); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
	}
	c.kill(a)
	c.kill(b)
	c.wipe(b)
	c.start(b)
	c.start(behind)
	c.neverServes(3 * time.Second)
	c.start(a)
	for id, r := range c.rigs {
		r.awaitServed()
		if !r.exists("/x") || !r.exists("/y") {
			t.Errorf("server %d lost what was committed", id)
		}
	}
	if id := c.rigs[b].replica.Identity.RaftID; id == "2" {
		t.Errorf("the wiped server is %q again", id)
	}
	c.eventually("three votes", func() bool { return c.voters() == 3 })
	c.settled()
}

// TestFoundingSurvivesRestarts: the ensemble forms although servers start and stop in the
// meantime.
func TestFoundingSurvivesRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testFoundingSurvivesRestarts)
}

func testFoundingSurvivesRestarts(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	for round := range 6 {
		id := uint64(round%3 + 1)
		r := c.start(id)
		if round%2 == 0 {
			time.Sleep(time.Duration(round*30) * time.Millisecond)
		}
		delete(c.rigs, id)
		if err := r.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Fatal(err)
		}
	}
	c.startAll()
	c.settled()
}

// TestLostRaftState: a server that has its identity but not its Raft state doesn't start
// over under that identity.
func TestLostRaftState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testLostRaftState)
}

func testLostRaftState(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	c.startAll()
	c.settled()
	time.Sleep(time.Second)
	for id := uint64(1); id <= 3; id++ {
		c.stop(id)
	}
	files, err := os.ReadDir(c.dir(2) + "/log")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if f.Name() != datadir.IdentityFile && f.Name() != bootstrap.StateFile {
			if err := os.RemoveAll(c.dir(2) + "/log/" + f.Name()); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustRefuse(t, c.config(2), c.dir(2)+"/log", datadir.IdentityFile, "is missing", "empty directory")
	// An empty log isn't accepted, either.
	empty, err := raftlog.Open(raftlog.Options{LogDir: c.dir(2) + "/log", SnapDir: c.dir(2) + "/snap"})
	if err == nil {
		err = empty.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	r := c.start(2)
	select {
	case err := <-r.Err():
		if !strings.Contains(err.Error(), "has lost the Raft state") {
			t.Errorf("stopped with %v", err)
		}
	case <-time.After(patience):
		t.Errorf("the server runs: %+v", r.Status())
	}
}

// wipe removes the directories of a stopped server.
func (c *cluster) wipe(id uint64) {
	c.t.Helper()
	c.awaitClosed(id)
	if err := os.RemoveAll(c.dir(id)); err != nil {
		c.t.Fatal(err)
	}
}

// voters counts the running servers that are voters in the leader's Raft configuration,
// compared by ServerID: an earlier server with the same id doesn't count.
func (c *cluster) voters() int {
	_, r := c.leader()
	n := 0
	for _, s := range r.replica.Raft().GetConfiguration().Configuration().Servers {
		here := c.rigs[membership.ServerOf(s.ID)]
		if s.Suffrage == 0 && here != nil && here.replica.Raft() != nil && here.replica.Identity.RaftID == s.ID {
			n++
		}
	}
	return n
}

func ptr[T any](v T) *T { return &v }
