package raftfsm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/datadir"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/session"
)

// TestStandaloneJoinsUnderAnotherID starts member 3 of an ensemble on the directories of
// a standalone server, also after an interrupted adopt. Then it checks that the member
// can't start as a standalone server or as another member.
func TestStandaloneJoinsUnderAnotherID(t *testing.T) {
	t.Parallel()
	for _, interrupted := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) { joinsUnderAnotherID(t, interrupted) })
	}
}

func joinsUnderAnotherID(t *testing.T, interrupted bool) {
	c := newCluster(t, 3).onDisk()
	alone := func(cfg *Config) {
		cfg.ID, cfg.Members = 1, nil
		cfg.Log.Dir, cfg.DataDir = c.dir(3)+"/log", c.dir(3)+"/snap"
	}
	r := c.start(3, alone)
	r.awaitServed()
	s := r.attach(time.Hour)
	r.do(create(s, "/old", 0))
	c.stop(3)
	name := filepath.Join(c.dir(3), "log", datadir.IdentityFile)
	before, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if interrupted { // after adopt wrote the log entry, before it wrote the identity
		n := newNode(testConfig(t, c.configOf(3)))
		var err error
		if n.peers, err = ensemble.New(environment(n), n.rhythm); err != nil {
			t.Fatal(err)
		}
		if err := n.replica.Open(); err != nil {
			t.Fatal(err)
		}
		if err := n.replica.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, before, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.startAll()
	c.awaitIDs("1,2,3 voting 1,2,3 others ")
	for id, r := range c.rigs {
		if !r.exists("/old") {
			t.Errorf("server %d does not have what the first one had", id)
		}
	}
	if o := c.rigs[2].reattach(s); o.code != proto.Ok {
		t.Errorf("the session did not survive: %+v", o)
	}
	c.settled()

	// A member of three can't start as a standalone server or as another member.
	c.stop(3)
	for name, tune := range map[string]func(*Config){
		"belongs to a member of an ensemble of 3 servers": alone,
		"holds the state of server 3, not of server 2":    func(cfg *Config) { cfg.ID = 2 },
	} {
		cfg := c.configOf(3)
		tune(&cfg)
		n, err := startNode(cfg)
		if err == nil {
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("started, or refused with %v, want %q", err, name)
		}
	}
	if lead, _ := c.leader(); lead == 3 {
		t.Error("a server that is not there leads")
	}
	c.start(3).awaitServed()
	c.settled()
}

// configOf returns a configuration for a server on its disk.
func (c *cluster) configOf(id uint64) Config {
	return Config{ID: id, Members: c.list, Peers: Peers{Network: c.net.Host(hostOf(id))}, Handler: newRecorder(),
		TickTime: 200 * time.Millisecond, Log: Log{Dir: c.dir(id) + "/log"}, DataDir: c.dir(id) + "/snap"}
}

// TestJoinerCatchesUpBySnapshot adds a server to an ensemble after the log was truncated
// at the start.
func TestJoinerCatchesUpBySnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testJoinerCatchesUpBySnapshot)
}

func testJoinerCatchesUpBySnapshot(t *testing.T) {
	c := newCluster(t, 3)
	for id := uint64(1); id <= 3; id++ {
		c.start(id, func(cfg *Config) { cfg.Log.SnapTrailing = 1 })
	}
	_, r := c.leader()
	s := r.attach(time.Hour)
	for _, path := range []string{"/a", "/b", "/c"} {
		if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, path, 0) }); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
	}
	for _, r := range c.rigs {
		if err := r.Snapshot(); err != nil {
			t.Fatal(err)
		}
	}
	joiner := c.start(4, func(cfg *Config) { cfg.Members = append(c.list[:3:3], memberAt(4)) })
	time.Sleep(time.Second)
	r.reconfigureOK(t, serverLine(4), "")
	joiner.awaitServed()
	if joiner.jumps() == 0 {
		t.Error("it did not begin with a snapshot")
	}
	c.awaitIDs("1,2,3,4 voting 1,2,3,4 others ")
	c.settled()
}

func (r *rig) jumps() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.jumped
}
