package transport

import (
	"io"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

func TestRebase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                 string
		applied, first       uint64
		prev, commit, wantAt uint64
		entries, left        []uint64
		wantCommit           uint64
		untouched            bool
	}{
		{name: "in the log", applied: 20, first: 5, prev: 10, commit: 20, entries: []uint64{11}, untouched: true},
		{name: "ahead", applied: 20, first: 5, prev: 30, commit: 20, untouched: true},
		{name: "heartbeat", applied: 20, first: 5, prev: 0, untouched: true},
		{name: "after a snapshot, nothing follows", applied: 10, first: 0, prev: 10, commit: 10, entries: []uint64{11}, untouched: true},
		{name: "after a snapshot", applied: 10, first: 11, prev: 10, commit: 40, entries: []uint64{11, 12}, left: []uint64{11, 12}, wantCommit: 12},
		{name: "nothing new", applied: 10, first: 11, prev: 8, commit: 40, entries: []uint64{9, 10}, wantCommit: 10},
		{name: "nothing at all", applied: 10, first: 11, prev: 8, commit: 40, wantCommit: 10},
		{name: "before the snapshot", applied: 10, first: 0, prev: 8, commit: 9, entries: []uint64{9, 10, 11}, left: []uint64{11}, wantCommit: 9},
	} {
		a := &raft.AppendEntriesRequest{PrevLogEntry: c.prev, PrevLogTerm: 3, LeaderCommitIndex: c.commit, Term: 7}
		for _, i := range c.entries {
			a.Entries = append(a.Entries, &raft.Log{Index: i})
		}
		b := rebase(a, c.applied, c.first)
		if c.untouched {
			if b != a {
				t.Errorf("%s: %+v", c.name, b)
			}
			continue
		}
		var left []uint64
		for _, l := range b.Entries {
			left = append(left, l.Index)
		}
		if b.PrevLogEntry != 0 || b.PrevLogTerm != 0 || b.Term != 7 || b.LeaderCommitIndex != c.wantCommit || !slices.Equal(left, c.left) {
			t.Errorf("%s: %+v with %v", c.name, b, left)
		}
		if a.PrevLogEntry != c.prev || len(a.Entries) != len(c.entries) {
			t.Errorf("%s: the request was changed", c.name)
		}
	}
}

// TestEntriesAfterASnapshotAreResent: a follower has a snapshot, and entries after
// it that it doesn't know to be committed. The leader never got the answer and sends them
// again.
func TestEntriesAfterASnapshotAreResent(t *testing.T) {
	t.Parallel()
	m := quorum.NewMemory()
	hub := newHub(t, m, quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, io.Discard)
	conf := raft.Configuration{Servers: []raft.Server{{ID: "1", Address: "s1:1"}, {ID: "2", Address: "s2:1"}}}
	cfg := raft.DefaultConfig()
	cfg.LocalID, cfg.Logger, cfg.NoSnapshotRestoreOnStart, cfg.NoLegacyTelemetry = "2", hclog.NewNullLogger(), true, true
	store, snaps := raft.NewInmemStore(), raft.NewInmemSnapshotStore()
	var follower *raft.Raft
	trans := New(Config{Hub: hub, ID: "2", Addr: "s2:1",
		Applied:    func() uint64 { return follower.AppliedIndex() },
		FirstIndex: func() uint64 { first, _ := store.FirstIndex(); return first }})
	defer trans.Close()
	sink, err := snaps.Create(raft.SnapshotVersionMax, 10, 3, conf, 1, trans)
	if err == nil {
		err = sink.Close()
	}
	if err == nil {
		err = store.SetUint64([]byte("CurrentTerm"), 3)
	}
	if err != nil {
		t.Fatal(err)
	}
	fsm := &countFSM{changed: make(chan struct{})}
	if follower, err = raft.NewRaft(cfg, fsm, store, store, snaps, trans); err != nil {
		t.Fatal(err)
	}
	defer follower.Shutdown()
	leader := New(Config{Hub: newHub(t, m, quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, io.Discard), ID: "1", Addr: "s1:1"})
	defer leader.Close()
	send := func(prev, commit uint64, entries ...*raft.Log) {
		t.Helper()
		var resp raft.AppendEntriesResponse
		err := leader.AppendEntries("2", "s2:1", &raft.AppendEntriesRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("1"), Addr: []byte("1")},
			Term:      9, PrevLogEntry: prev, PrevLogTerm: 3, Entries: entries, LeaderCommitIndex: commit}, &resp)
		if err != nil || !resp.Success {
			t.Fatalf("entries after %d: %+v, %v", prev, resp, err)
		}
	}
	a, b := &raft.Log{Index: 11, Term: 9, Data: []byte("a")}, &raft.Log{Index: 12, Term: 9, Data: []byte("b")}
	send(10, 10, a, b)
	send(10, 10, a, b) // we lose the answer to these
	send(10, 10)
	send(8, 12, &raft.Log{Index: 9, Term: 3}, &raft.Log{Index: 10, Term: 3}, a)
	fsm.waitFor(t, "a") // but no further: this request doesn't prove that 12 is the leader's entry
	if got := follower.CommitIndex(); got != 11 {
		t.Errorf("committed up to %d", got)
	}
	send(10, 12, a, b)
	fsm.waitFor(t, "b")
}

// TestVoterUnknownToAnElector: a server becomes a voter by an entry that the leader commits
// with only that server, and the leader dies permanently. The third server doesn't know that
// the candidate is a voter, but elects it anyway.
func TestVoterUnknownToAnElector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		conf := raft.Configuration{Servers: []raft.Server{
			{ID: "1", Address: "s1:1", Suffrage: raft.Nonvoter}, {ID: "2", Address: "s2:1"}, {ID: "3", Address: "s3:1"}}}
		var nodes []*node
		for _, s := range conf.Servers {
			nodes = append(nodes, startOne(t, m, s, conf, nil))
		}
		leader := leaderOf(t, nodes)
		applied(t, leader, "before")
		next, behind := nodes[0], nodes[1]
		if behind == leader {
			behind = nodes[2]
		}
		next.fsm.waitFor(t, "before")
		m.Partition([]string{leader.host}, []string{behind.host})
		if err := leader.raft.AddVoter(next.id, raft.ServerAddress(next.host+":1"), 0, 0).Error(); err != nil {
			t.Fatal(err)
		}
		m.Kill(leader.host)
		m.Rejoin([]string{leader.host}, []string{behind.host})
		if hit := leaderOf(t, []*node{next, behind}); hit != next {
			t.Fatalf("server %s leads", hit.id)
		}
		applied(t, next, "after")
	})
}
