package raftfsm

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm/internal/bootstrap"
	"github.com/zkgo/zkgo/raftfsm/internal/command"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/membership"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
	"github.com/zkgo/zkgo/session"
)

// compact writes a snapshot and truncates the whole log before it.
func (r *rig) compact() {
	r.t.Helper()
	engine := r.replica.Raft()
	rc := engine.ReloadableConfig()
	rc.TrailingLogs = 0
	if err := engine.ReloadConfig(rc); err != nil {
		r.t.Fatal(err)
	}
	if err := engine.Snapshot().Error(); err != nil {
		r.t.Fatal(err)
	}
}

// TestSnapshotInstalled partitions a follower until the leader's log no longer has the
// entries that it needs. The follower gets a snapshot, calls Jumped, replaces its Raft
// instance, and continues to follow.
func TestSnapshotInstalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSnapshotInstalled)
}

func testSnapshotInstalled(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	for round := range 2 {
		lead, r := c.leader()
		id, f := c.follower()
		s := r.attach(time.Minute)
		rest := []string{}
		for x := range c.rigs {
			if x != id {
				rest = append(rest, hostOf(x))
			}
		}
		before := f.replica.Raft()
		f.mu.Lock()
		jumped := f.jumped
		f.mu.Unlock()
		c.net.Partition([]string{hostOf(id)}, rest)
		for i := range 100 {
			path := fmt.Sprintf("/round-%d-%d", round, i)
			if o := r.do(create(s, path, 0)); o.code != proto.Ok {
				t.Fatalf("%+v", o)
			}
		}
		for x, y := range c.rigs {
			if x != id {
				y.compact()
			}
		}
		c.net.Rejoin([]string{hostOf(id)}, rest)
		f.recorder.wait(t, "Jumped", func() bool { return f.jumped > jumped })
		c.eventually("the follower is back", func() bool {
			return f.exists(fmt.Sprintf("/round-%d-99", round)) && f.Status().Serving && f.replica.Raft() != before
		})
		// Retry like a client that reconnects: the new Raft instance may not know the leader
		// when the first command comes.
		back := c.surelyAttached(f, time.Minute)
		after := func(s session.Session) command.Command { return create(s, fmt.Sprintf("/after-%d", round), 0) }
		if o := c.sure(f, &back, after); o.code != proto.Ok && o.code != proto.ErrNodeExists {
			t.Fatalf("round %d: %+v", round, o)
		}
		c.settled()
		if now, _ := c.leader(); now != lead {
			t.Logf("round %d: server %d leads instead of %d", round, now, lead)
		}
	}
}

// TestHandOver stops the leader cleanly: the leadership goes to another server before the
// old leader is down.
func TestHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testHandOver)
}

func testHandOver(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	old, _ := c.leader()
	_, r := c.follower()
	s := r.attach(time.Minute)
	r.do(create(s, "/a", 0))
	done := make(chan error, 1)
	go func() { done <- c.rigs[old].Close() }()
	r.recorder.wait(t, "another leader", func() bool {
		st := r.Status()
		return st.Serving && st.Leader != old
	})
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	delete(c.rigs, old)
	if o := c.sure(r, &s, func(s session.Session) command.Command { return create(s, "/b", 0) }); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	c.settled()
}

// TestSessionsLiveThroughFollowers: reports from the server that a client is connected to
// keep its session alive. If they stop, the session expires on every server.
func TestSessionsLiveThroughFollowers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testSessionsLive)
}

func testSessionsLive(t *testing.T) {
	c := newCluster(t, 3)
	c.startAll()
	_, f := c.follower()
	live, dead := f.attach(20*time.Second), f.attach(10*time.Second)
	f.setLive(live.ID)
	for _, s := range []session.Session{live, dead} {
		if o := f.do(create(s, fmt.Sprintf("/e-%x", s.ID), flagEphemeral)); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
	}
	for id, r := range c.rigs {
		c.eventually(fmt.Sprintf("expiry on server %d", id), func() bool { return !r.exists(fmt.Sprintf("/e-%x", dead.ID)) })
	}
	start := time.Now()
	c.eventually("contact confirmed after the expiry", func() bool { return f.Confirmed().After(start) })
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(200 * time.Millisecond) {
		if !f.exists(fmt.Sprintf("/e-%x", live.ID)) {
			t.Fatal("a session that is reported alive has expired")
		}
	}
	f.setLive()
	c.eventually("the end of the other session", func() bool { return !f.exists(fmt.Sprintf("/e-%x", live.ID)) })
	c.settled()
}

// TestMovedServer restarts a member on another port, which only its own configuration file
// has. The others find it, and Raft's configuration gets the new address.
func TestMovedServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testMovedServer)
}

func testMovedServer(t *testing.T) {
	c := newCluster(t, 3).onDisk()
	c.startAll()
	c.settled()
	lead, _ := c.leader()
	id := lead%3 + 1
	c.stop(id)
	c.start(id, func(cfg *Config) {
		cfg.Members = slices.Clone(cfg.Members)
		cfg.Members[id-1].QuorumAddr = hostOf(id) + ":12888"
	})
	c.rigs[id].awaitServed()
	c.eventually("Raft's configuration has the new address", func() bool {
		_, r := c.leader()
		for _, s := range r.replica.Raft().GetConfiguration().Configuration().Servers {
			if membership.ServerOf(s.ID) == id {
				return string(s.Address) == hostOf(id)+":12888"
			}
		}
		return false
	})
	r := c.rigs[id]
	if o := r.do(create(r.attach(time.Minute), "/a", 0)); o.code != proto.Ok {
		t.Fatalf("%+v", o)
	}
	c.settled()
}

// TestStandaloneGrows starts an ensemble of three with a formerly standalone server: the
// others get its state.
func TestStandaloneGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, testStandaloneGrows)
}

func testStandaloneGrows(t *testing.T) {
	c, s := stoodAlone(t)
	c.startAll()
	for id, r := range c.rigs {
		if !r.exists("/old") {
			t.Errorf("server %d does not have what the first one had", id)
		}
	}
	c.awaitIDs("1,2,3 voting 1,2,3 others ")
	_, f := c.follower()
	if o := f.reattach(s); o.code != proto.Ok {
		t.Errorf("the session did not survive: %+v", o)
	}
	c.settled()
}

// stoodAlone returns an ensemble of three that isn't started yet. The first server has
// been standalone and has /old and a session.
func stoodAlone(t *testing.T) (*cluster, session.Session) {
	c := newCluster(t, 3).onDisk()
	all := c.list
	c.list = all[:1]
	r := c.start(1)
	r.awaitServed()
	s := r.attach(time.Hour)
	r.do(create(s, "/old", 0))
	c.stop(1)
	c.list = all
	return c, s
}

// slowStart is a log that blocks reads of entries, which Raft needs to start.
type slowStart struct {
	raft.LogStore
	ready <-chan struct{}
}

func (l slowStart) GetLog(index uint64, entry *raft.Log) error {
	<-l.ready
	return l.LogStore.GetLog(index, entry)
}

type slowStores struct {
	replica.Stores
	ready <-chan struct{}
}

func (s slowStores) Logs() raft.LogStore { return slowStart{s.Stores.Logs(), s.ready} }

// TestStandaloneGrowsSlowly: a server with data reports that before its Raft runs. If
// empty servers mistook it for another empty server, they would include it in a new
// ensemble without its data.
func TestStandaloneGrowsSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := stoodAlone(t)
		ready := make(chan struct{})
		c.start(1, func(cfg *Config) {
			cfg.open = func(cfg *replica.Config) (replica.Stores, error) {
				s, err := replica.OpenStores(cfg)
				return slowStores{s, ready}, err
			}
		})
		c.start(2)
		c.start(3)
		time.Sleep(bootstrap.FreshFor / 2)
		for _, id := range []uint64{2, 3} {
			if st := c.rigs[id].Status(); st.Serving {
				t.Errorf("server %d serves without the one that has the data: %+v", id, st)
			}
		}
		close(ready)
		for id, r := range c.rigs {
			if r.awaitServed(); !r.exists("/old") {
				t.Errorf("server %d does not have what the first one had", id)
			}
		}
		c.settled()
	})
}

// TestStopsBesideASilentServer: a stopping leader doesn't wait for servers that it can no
// longer reach.
func TestStopsBesideASilentServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		id, r := c.leader()
		rest := []string{}
		for other := range c.rigs {
			if other != id {
				rest = append(rest, hostOf(other))
			}
		}
		c.net.Partition([]string{hostOf(id)}, rest)
		begun := time.Now()
		delete(c.rigs, id)
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		// A transfer of the leadership may last as long as an election.
		if d := time.Since(begun); d > 3*ensemble.ElectionTimeout {
			t.Errorf("stopping took %v", d)
		}
	})
}

// TestStopsBesideAFrozenServer: a leader that stops just after another server has frozen
// hands over at once to the server with the newest entries.
func TestStopsBesideAFrozenServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.startAll()
		old, r := c.leader()
		if old != 3 {
			t.Fatalf("server %d leads", old)
		}
		const frozen, next = 2, 1 // the frozen server has the higher id, which breaks ties
		s := r.attach(time.Minute)
		c.settled()
		c.net.Partition([]string{hostOf(frozen)}, []string{hostOf(old), hostOf(next)})
		r.do(create(s, "/a", 0))
		begin := time.Now()
		done := make(chan error, 1)
		go func() { done <- r.Close() }()
		delete(c.rigs, old)
		n := c.rigs[next]
		n.recorder.wait(t, "another leader", func() bool { st := n.Status(); return st.Role == Leader && st.Serving })
		if d := time.Since(begin); d > 50*time.Millisecond {
			t.Errorf("no server led for %v", d)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		c.net.Rejoin([]string{hostOf(frozen)}, []string{hostOf(old), hostOf(next)})
		if o := c.sure(n, ptr(n.attach(time.Minute)), func(s session.Session) command.Command { return create(s, "/b", 0) }); o.code != proto.Ok {
			t.Fatalf("%+v", o)
		}
		c.settled()
	})
}

// TestMemberAlone: a member doesn't start if its configuration file lists only itself,
// and the leader that it would have deposed keeps leading.
func TestMemberAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		c := newCluster(t, 3).onDisk()
		c.startAll()
		lead, l := c.leader()
		term := l.replica.Raft().CurrentTerm()
		id, _ := c.follower()
		cfg := c.rigs[id].cfg
		c.stop(id)
		cfg.Members, cfg.Handler = []membership.Member{memberAt(id)}, newRecorder()
		n, err := startNode(cfg)
		if err == nil {
			select {
			case err = <-n.Err():
			case <-time.After(patience):
			}
			n.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "but the configuration names this server alone") {
			t.Errorf("it starts: %v", err)
		}
		time.Sleep(10 * time.Second)
		if now, r := c.leader(); now != lead || r.replica.Raft().CurrentTerm() != term {
			t.Errorf("server %d leads in term %d, it was server %d in term %d", now, r.replica.Raft().CurrentTerm(), lead, term)
		}
	})
}
