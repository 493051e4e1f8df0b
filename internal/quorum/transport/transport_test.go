package transport

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/quorum"
)

func TestFollowersLearnCommitsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Without the pusher the followers wouldn't learn about commits for an hour.
		nodes := startRaft(t, quorum.NewMemory(), 3, func(c *raft.Config, _ *Config) { c.CommitTimeout = time.Hour })
		leader := leaderOf(t, nodes)
		for _, s := range []string{"a", "b", "c"} {
			f := leader.raft.Apply([]byte(s), 0)
			if err := f.Error(); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			leader.trans.Committed(f.Index())
			for _, n := range nodes {
				n.fsm.waitFor(t, s)
			}
			if d := time.Since(start); d > time.Second {
				t.Fatalf("the followers learned of %q after %v", s, d)
			}
		}
	})
}

func TestConfirmedCountsStartsOfThisTermOnly(t *testing.T) {
	t.Parallel()
	tr := &contacts{self: "1"}
	conf := raft.Configuration{Servers: []raft.Server{{ID: "1"}, {ID: "2"}, {ID: "3"}, {ID: "4", Suffrage: raft.Nonvoter}}}
	base := time.Now()
	at := func(s int) time.Time { return base.Add(time.Duration(s) * time.Second) }
	from := func(s int) contact { return contact{at(s), uint64(s)} }
	check := func(term uint64, want time.Time) {
		t.Helper()
		if got := tr.Confirmed(term, conf, at(100)); !got.Equal(want) {
			t.Fatalf("confirmed at %v, want %v", got.Sub(base), want.Sub(base))
		}
	}
	check(5, time.Time{})
	changed := tr.Changed()
	tr.record(5, "4", from(50))
	<-changed
	check(5, time.Time{}) // not a voter
	tr.record(5, "2", from(10))
	check(5, at(10))
	tr.record(5, "2", from(9)) // an answer that overtook another
	tr.record(5, "3", from(20))
	check(5, at(20))
	tr.record(4, "2", from(90)) // an older term
	check(5, at(20))
	check(6, time.Time{})
	conf.Servers = append(conf.Servers, raft.Server{ID: "5"}, raft.Server{ID: "6"})
	check(5, at(10)) // three of five
	if !tr.ConfirmedSince(5, conf, 9) || tr.ConfirmedSince(5, conf, 10) || tr.ConfirmedSince(6, conf, 0) {
		t.Error("the order of the numbers does not count")
	}
}

func TestContactIsTheStartOfTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		nodes := startRaft(t, m, 3, nil)
		leader := leaderOf(t, nodes)
		term := leader.raft.CurrentTerm()
		conf := leader.raft.GetConfiguration().Configuration()
		for _, n := range nodes {
			if n != leader {
				m.Delay(n.host, leader.host, 300*time.Millisecond)
			}
		}
		time.Sleep(400 * time.Millisecond)
		for range 100 {
			now := time.Now()
			if d := now.Sub(leader.trans.Confirmed(term, conf, now)); d < 300*time.Millisecond {
				t.Fatalf("confirmed %v ago over a link that takes 300 ms", d)
			}
			time.Sleep(7 * time.Millisecond)
		}
	})
}

// fakePeer answers and records the AppendEntries of a single Transport.
func fakePeer(t *testing.T, m *quorum.Memory, seen chan *raft.AppendEntriesRequest) {
	hub := newHub(t, m, quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, io.Discard)
	tr := New(Config{Hub: hub, ID: "2", Addr: "s2:1"})
	t.Cleanup(func() { tr.Close() })
	go func() {
		for {
			select {
			case rpc := <-tr.Consumer():
				req := rpc.Command.(*raft.AppendEntriesRequest)
				seen <- req
				rpc.Respond(&raft.AppendEntriesResponse{Term: req.Term, Success: true}, nil)
			case <-tr.ctx.Done():
				return
			}
		}
	}()
}

// besidePeer returns a single Transport and a channel of the messages that its peer
// receives.
func besidePeer(t *testing.T) (*Transport, <-chan *raft.AppendEntriesRequest) {
	m := quorum.NewMemory()
	seen := make(chan *raft.AppendEntriesRequest, 100)
	fakePeer(t, m, seen)
	hub := newHub(t, m, quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, io.Discard)
	tr := New(Config{Hub: hub, ID: "1", Addr: "s1:1"})
	t.Cleanup(func() { tr.Close() })
	return tr, seen
}

func TestPusherStaysWithinAcknowledgedEntries(t *testing.T) {
	t.Parallel()
	tr, seen := besidePeer(t)
	next := func() *raft.AppendEntriesRequest {
		t.Helper()
		select {
		case r := <-seen:
			return r
		case <-time.After(30 * time.Second):
			t.Fatal("no AppendEntries")
			return nil
		}
	}
	send := func(a raft.AppendEntriesRequest) {
		t.Helper()
		var resp raft.AppendEntriesResponse
		if err := tr.AppendEntries("2", "s2:1", &a, &resp); err != nil {
			t.Fatal(err)
		}
		next()
	}
	header := headerOf("1")
	tr.Committed(9)
	send(raft.AppendEntriesRequest{RPCHeader: header, Term: 3}) // a heartbeat acknowledges nothing
	send(raft.AppendEntriesRequest{RPCHeader: header, Term: 3, PrevLogEntry: 4, PrevLogTerm: 2,
		Entries: []*raft.Log{{Index: 5, Term: 2}, {Index: 6, Term: 3}}, LeaderCommitIndex: 4})
	if p := next(); p.PrevLogEntry != 6 || p.PrevLogTerm != 3 || p.LeaderCommitIndex != 6 || p.Term != 3 || len(p.Entries) != 0 {
		t.Fatalf("pushed %+v", p)
	}
	send(raft.AppendEntriesRequest{RPCHeader: header, Term: 3, PrevLogEntry: 6, PrevLogTerm: 3,
		Entries: entriesOf(7, 12), LeaderCommitIndex: 6})
	if p := next(); p.PrevLogEntry != 12 || p.LeaderCommitIndex != 9 {
		t.Fatalf("pushed %+v", p)
	}
	// In a new term no entry is acknowledged yet.
	send(raft.AppendEntriesRequest{RPCHeader: header, Term: 4, PrevLogEntry: 8, PrevLogTerm: 3, LeaderCommitIndex: 7})
	if p := next(); p.Term != 4 || p.PrevLogEntry != 8 || p.LeaderCommitIndex != 8 {
		t.Fatalf("pushed %+v", p)
	}
}

// TestEntriesOfOneMessageFit sends more entries than the receiver accepts in one message,
// so we should split them.
func TestEntriesOfOneMessageFit(t *testing.T) {
	t.Parallel()
	tr, seen := besidePeer(t)
	large := make([]byte, defaultMaxEntry/8)
	args := raft.AppendEntriesRequest{RPCHeader: headerOf("1"), Term: 3, PrevLogEntry: 4, PrevLogTerm: 3,
		Entries: entriesOf(5, 14), LeaderCommitIndex: 14}
	args.Entries[0].Data = []byte("small")
	for _, e := range args.Entries[1:] {
		e.Data = large
	}
	var resp raft.AppendEntriesResponse
	if err := tr.AppendEntries("2", "s2:1", &args, &resp); err != nil || !resp.Success {
		t.Fatal(err)
	}
	got := <-seen
	last := got.Entries[len(got.Entries)-1].Index
	if len(args.Entries) != len(got.Entries) || last != args.Entries[len(args.Entries)-1].Index {
		t.Errorf("Raft believes that %d entries were sent, the peer has %d", len(args.Entries), len(got.Entries))
	}
	if last >= 14 || got.LeaderCommitIndex > last {
		t.Errorf("entries up to %d, committed up to %d", last, got.LeaderCommitIndex)
	}
}

func TestMutedWhileStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stalled atomic.Pointer[Transport]
		nodes := startRaft(t, quorum.NewMemory(), 3, func(_ *raft.Config, tc *Config) {
			self := new(atomic.Bool)
			id := tc.ID
			tc.Hanging = func() time.Duration {
				if s := stalled.Load(); s != nil && s.cfg.ID == id {
					self.Store(true)
				}
				if self.Load() {
					return time.Hour
				}
				return 0
			}
		})
		leader := leaderOf(t, nodes)
		stalled.Store(leader.trans)
		eventually(t, "another leader", func() bool {
			for _, n := range nodes {
				if n != leader && n.raft.State() == raft.Leader {
					return true
				}
			}
			return false
		})
	})
}

// TestPatienceWithSlowDisks: a leader should wait longer before it goes silent in each
// further term, and only as long as initially when no write has hung for a while.
func TestPatienceWithSlowDisks(t *testing.T) {
	t.Parallel()
	m := muting{limit: stallLimit}
	now := time.Now()
	for _, step := range []struct {
		term   uint64
		age    time.Duration
		later  time.Duration // time since the step before
		silent bool
	}{
		{1, 0, 0, false}, {1, 4 * time.Second, 0, false}, {1, 6 * time.Second, 0, true}, {1, 7 * time.Second, 0, true},
		{1, 0, time.Second, false}, {1, 6 * time.Second, 10 * time.Second, true}, // the same leadership
		{3, 9 * time.Second, time.Second, false}, {3, 11 * time.Second, 0, true}, {3, 12 * time.Second, time.Second, true},
		{5, 19 * time.Second, 10 * time.Second, false}, {5, 21 * time.Second, 0, true},
		{6, 39 * time.Second, 0, false}, {6, 41 * time.Second, 0, true},
		{7, 81 * time.Second, 0, true}, {8, 79 * time.Second, 0, false}, {8, 81 * time.Second, 0, true}, // the limit doesn't grow further
		{9, 0, 30 * time.Second, false}, {9, 6 * time.Second, 0, false}, // not calm for long enough
		{9, 0, 61 * time.Second, false}, {9, 6 * time.Second, 0, true},
	} {
		now = now.Add(step.later)
		if got := m.silent(step.term, step.age, now); got != step.silent {
			t.Errorf("%+v: silent %t", step, got)
		}
	}
}

// awaitFollowers waits until all nodes know the leader.
func awaitFollowers(t *testing.T, nodes []*node, leader *node) {
	t.Helper()
	eventually(t, "followers that know the leader", func() bool {
		for _, n := range nodes {
			if _, id := n.raft.LeaderWithID(); id != leader.id {
				return false
			}
		}
		return true
	})
}

func TestDeadLeaderIsReplacedBeforeItsHeartbeatsTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		nodes := startRaft(t, m, 3, func(c *raft.Config, _ *Config) {
			c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = time.Minute, time.Minute, time.Minute
		})
		// We don't wait for the first leader either.
		nodes[2].trans.Kick()
		leader := leaderOf(t, nodes)
		awaitFollowers(t, nodes, leader)
		start := time.Now()
		m.Kill(leader.host)
		next := leaderOf(t, []*node{nodes[0], nodes[1]})
		if d := time.Since(start); d > time.Second {
			t.Fatalf("server %s led after %v", next.id, d)
		}
	})
}

func TestSlowLeaderIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := quorum.NewMemory()
		nodes := startRaft(t, m, 3, func(c *raft.Config, _ *Config) {
			c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = time.Minute, time.Minute, time.Minute
		})
		nodes[2].trans.Kick()
		leader := leaderOf(t, nodes)
		term := leader.raft.CurrentTerm()
		awaitFollowers(t, nodes, leader)
		for _, n := range nodes {
			if n != leader {
				m.Reset(leader.host, n.host) // connections end, but the port still opens
				m.Hold(leader.host, n.host)
			}
		}
		time.Sleep(20 * time.Second)
		for _, n := range nodes {
			m.Heal(leader.host, n.host)
			if got := n.raft.CurrentTerm(); got != term {
				t.Fatalf("server %s is in term %d, the leader was elected in %d", n.id, got, term)
			}
		}
		if leaderOf(t, nodes) != leader {
			t.Fatal("the leader changed")
		}
	})
}

// headerOf returns the header of Raft's messages from a server.
func headerOf(id string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
}

// snapshotAt returns the snapshot announcement of server 1, which leads in term 7.
func snapshotAt(index uint64, size int64) *raft.InstallSnapshotRequest {
	conf := raft.Configuration{Servers: []raft.Server{{ID: "1", Address: "s1:1"}, {ID: "2", Address: "s2:1"}}}
	return &raft.InstallSnapshotRequest{RPCHeader: headerOf("1"), SnapshotVersion: raft.SnapshotVersionMax, Term: 7,
		LastLogIndex: index, LastLogTerm: 6, Configuration: raft.EncodeConfiguration(conf), ConfigurationIndex: 1, Size: size}
}

func TestOutdatedSnapshotIsNotInstalled(t *testing.T) {
	t.Parallel()
	m := quorum.NewMemory()
	var applied atomic.Uint64
	hub2 := newHub(t, m, quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, io.Discard)
	follower := New(Config{Hub: hub2, ID: "2", Addr: "s2:1", Applied: applied.Load})
	defer follower.Close()
	hub1 := newHub(t, m, quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, io.Discard)
	leader := New(Config{Hub: hub1, ID: "1", Addr: "s1:1"})
	defer leader.Close()

	installed := make(chan uint64, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for {
			select {
			case rpc := <-follower.Consumer():
				req := rpc.Command.(*raft.InstallSnapshotRequest)
				_, _ = io.Copy(io.Discard, rpc.Reader)
				installed <- req.LastLogIndex
				rpc.Respond(&raft.InstallSnapshotResponse{Term: req.Term, Success: true}, nil)
			case <-ctx.Done():
				return
			}
		}
	}()
	for _, step := range []struct {
		index, applied uint64
		install        bool
	}{{100, 99, true}, {100, 100, false}, {50, 100, false}, {101, 100, true}} {
		applied.Store(step.applied)
		data := bytes.Repeat([]byte("x"), 300_000)
		var resp raft.InstallSnapshotResponse
		err := leader.InstallSnapshot("2", "s2:1", snapshotAt(step.index, int64(len(data))), &resp, bytes.NewReader(data))
		if err != nil || !resp.Success || resp.Term != 7 {
			t.Fatalf("snapshot at %d: %+v, %v", step.index, resp, err)
		}
		select {
		case i := <-installed:
			if !step.install {
				t.Errorf("the snapshot at %d was installed over %d", i, step.applied)
			}
		default:
			if step.install {
				t.Errorf("the snapshot at %d was not installed over %d", step.index, step.applied)
			}
		}
	}
}

// twice is a network that delivers every message a second time.
type twice struct {
	quorum.Network
	after time.Duration
}

func (n twice) Replays(any) []Replay { return []Replay{{After: n.after}} }

// TestLateCopiesMeetTheNextTransport: a copy of a snapshot arrives after the Raft instance
// that installed the original is gone. We should not install it again.
func TestLateCopiesMeetTheNextTransport(t *testing.T) {
	t.Parallel()
	for _, filtered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := quorum.NewMemory()
			var applied atomic.Uint64
			net2 := twice{m.Host("s2"), time.Second}
			hub2, err := quorum.Listen(net2, "s2:1", quorum.Identity{ServerID: "2", Cluster: quorum.ClusterID{1}}, quorum.Security{}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer hub2.Close()
			hub1 := newHub(t, m, quorum.Identity{ServerID: "1", Cluster: quorum.ClusterID{1}}, io.Discard)
			leader := New(Config{Hub: hub1, ID: "1", Addr: "s1:1"})
			defer leader.Close()
			installed := make(chan uint64, 10)
			replays := NewReplays(hub2, net2)
			start := func() *Transport {
				cfg := Config{Hub: hub2, Replays: replays, ID: "2", Addr: "s2:1", Installed: func() {}}
				if filtered {
					cfg.Applied = applied.Load
				}
				f := New(cfg)
				go func() {
					for {
						select {
						case rpc := <-f.Consumer():
							_, _ = io.Copy(io.Discard, rpc.Reader)
							index := rpc.Command.(*raft.InstallSnapshotRequest).LastLogIndex
							applied.Store(index)
							installed <- index
							rpc.Respond(&raft.InstallSnapshotResponse{Term: 7, Success: true}, nil)
						case <-f.ctx.Done():
							return
						}
					}
				}()
				return f
			}
			follower := start()
			var resp raft.InstallSnapshotResponse
			if err := leader.InstallSnapshot("2", "s2:1", snapshotAt(100, 3), &resp, strings.NewReader("abc")); err != nil || !resp.Success {
				t.Fatalf("%+v, %v", resp, err)
			}
			_ = follower.Close()
			follower = start()
			defer follower.Close()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			if want := map[bool]int{true: 1, false: 2}[filtered]; len(installed) != want {
				t.Errorf("filtered: %v; installed %d times", filtered, len(installed))
			}
		})
	}
}

func TestCompareIDs(t *testing.T) {
	t.Parallel()
	ids := []raft.ServerID{"1", "2", "2.1", "2.9", "2.10", "3", "10", "10.1", "254"}
	for i, a := range ids {
		for j, b := range ids {
			if got := CompareIDs(a, b); (got < 0) != (i < j) || (got == 0) != (i == j) {
				t.Errorf("CompareIDs(%s, %s) = %d", a, b, got)
			}
		}
	}
}

// TestADeposedLeaderSendsNothingOfTheNext: Raft may still request it.
func TestADeposedLeaderSendsNothingOfTheNext(t *testing.T) {
	t.Parallel()
	tr, seen := besidePeer(t)
	entries := entriesOf(5, 6)
	entries[1].Term = 4
	for _, args := range []raft.AppendEntriesRequest{
		{RPCHeader: headerOf("1"), Term: 3, PrevLogEntry: 4, PrevLogTerm: 3, Entries: entries},
		{RPCHeader: headerOf("1"), Term: 3, PrevLogEntry: 4, PrevLogTerm: 4},
	} {
		if err := tr.AppendEntries("2", "s2:1", &args, new(raft.AppendEntriesResponse)); !errors.Is(err, errDeposed) {
			t.Error(err)
		}
	}
	snapshot := raft.InstallSnapshotRequest{RPCHeader: headerOf("1"), Term: 3, LastLogIndex: 5, LastLogTerm: 4}
	if err := tr.InstallSnapshot("2", "s2:1", &snapshot, new(raft.InstallSnapshotResponse), strings.NewReader("")); !errors.Is(err, errDeposed) {
		t.Error(err)
	}
	if len(seen) > 0 {
		t.Error("something was sent")
	}
}
