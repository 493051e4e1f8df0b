package transport

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/tests/kit/wait"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// countFSM records the applied entries.
type countFSM struct {
	mu      sync.Mutex
	applied []string
	changed chan struct{}
}

func (f *countFSM) Apply(l *raft.Log) any {
	f.mu.Lock()
	f.applied = append(f.applied, string(l.Data))
	close(f.changed)
	f.changed = make(chan struct{})
	f.mu.Unlock()
	return nil
}

func (f *countFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, io.ErrUnexpectedEOF }
func (f *countFSM) Restore(io.ReadCloser) error         { return io.ErrUnexpectedEOF }

func (f *countFSM) waitFor(t *testing.T, s string) {
	t.Helper()
	deadline := time.After(30 * time.Second)
	for {
		f.mu.Lock()
		changed := f.changed
		done := len(f.applied) > 0 && f.applied[len(f.applied)-1] == s
		f.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%q was never applied", s)
		}
	}
}

type node struct {
	id    raft.ServerID
	host  string
	hub   *quorum.Hub
	trans *Transport
	log   *slowLog
	raft  *raft.Raft
	fsm   *countFSM
}

func (n *node) close() {
	_ = n.raft.Shutdown().Error()
	_ = n.trans.Close()
	_ = n.hub.Close()
}

// startRaft runs n Raft servers over a Memory network; tune may change the configuration
// of each.
func startRaft(t *testing.T, m *quorum.Memory, n int, tune func(*raft.Config, *Config)) []*node {
	t.Helper()
	var conf raft.Configuration
	for i := 1; i <= n; i++ {
		conf.Servers = append(conf.Servers, raft.Server{
			ID: raft.ServerID(fmt.Sprint(i)), Address: raft.ServerAddress(fmt.Sprintf("s%d:1", i))})
	}
	var nodes []*node
	for _, s := range conf.Servers {
		nodes = append(nodes, startOne(t, m, s, conf, tune))
	}
	return nodes
}

func startOne(t *testing.T, m *quorum.Memory, s raft.Server, conf raft.Configuration, tune func(*raft.Config, *Config)) *node {
	t.Helper()
	host, _, _ := strings.Cut(string(s.Address), ":")
	n := &node{id: s.ID, host: host, fsm: &countFSM{changed: make(chan struct{})}}
	n.hub = newHub(t, m, quorum.Identity{ServerID: string(s.ID), Cluster: quorum.ClusterID{1}}, io.Discard)
	cfg := raft.DefaultConfig()
	cfg.LocalID, cfg.Logger = s.ID, hclog.NewNullLogger()
	cfg.NoLegacyTelemetry = true
	cfg.LeaderLeaseTimeout = cfg.HeartbeatTimeout // as in raftfsm
	tc := Config{Hub: n.hub, ID: s.ID, Addr: string(s.Address)}
	var r *raft.Raft
	var mu sync.Mutex
	tc.View = func() View {
		mu.Lock()
		defer mu.Unlock()
		if r == nil {
			return View{}
		}
		_, leader := r.LeaderWithID()
		return View{Leader: leader, Candidate: r.State() == raft.Candidate, Term: r.CurrentTerm(), LastIndex: r.LastIndex(), LastTerm: r.CurrentTerm(),
			Config: r.GetConfiguration().Configuration()}
	}
	if tune != nil {
		tune(cfg, &tc)
	}
	n.trans = New(tc)
	store := raft.NewInmemStore()
	snaps := raft.NewInmemSnapshotStore()
	if err := raft.BootstrapCluster(cfg, store, store, snaps, n.trans, conf); err != nil {
		t.Fatal(err)
	}
	n.log = &slowLog{InmemStore: store, storing: n.trans.Storing}
	started, err := raft.NewRaft(cfg, n.fsm, n.log, store, snaps, n.trans)
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	r = started
	mu.Unlock()
	n.raft = r
	t.Cleanup(n.close)
	return n
}

// eventually polls for a state that has no notification.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	wait.Eventually(t, what, ok)
}

func leaderOf(t *testing.T, nodes []*node) *node {
	t.Helper()
	var leader *node
	eventually(t, "a leader", func() bool {
		for _, n := range nodes {
			if n.raft.State() == raft.Leader && n.raft.VerifyLeader().Error() == nil {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// newHub starts a hub on the host of its server.
func newHub(t *testing.T, m *quorum.Memory, self quorum.Identity, log io.Writer) *quorum.Hub {
	t.Helper()
	name := "s" + strings.Split(self.ServerID, ".")[0]
	h, err := quorum.Listen(m.Host(name), name+":1", self, quorum.Security{}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}
