package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/ops/metrics"
	"github.com/zkgo/zkgo/internal/ops/mntr"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/internal/quorum"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
)

// elsewhere lists the exported metrics that other tests change.
var elsewhere = map[string]string{
	"config_file_differs":              "tests/compat/ensemble",
	"behaviour_level":                  "TestMixedVersions of raftfsm",
	"raft_messages_refused":            "TestHostilePeer of raftfsm",
	"behaviour_level_known":            "a number of this release: it changes with the next",
	"max_file_descriptor_count":        "the system's",
	"large_requests_rejected":          "TestLargeRequests",
	"request_throttle_wait_count":      "TestRequestsAboveTheLimitWaitTheirTurn",
	"stale_requests_dropped":           "TestStaleRequestsAreDropped",
	"observer_master_lag_transactions": "TestObserverMetrics: only a server with observers shows it",
	"observer_master_lag_milliseconds": "TestObserverMetrics: only a server with observers shows it",
	"memory_ceiling_bytes":             "TestWritesThatNeedMemoryAreRefused, as the other three of memory",
	"memory_used_bytes":                "TestMemoryGuard",
	"memory_full":                      "TestWritesThatNeedMemoryAreRefused",
	"memory_writes_refused":            "TestWritesThatNeedMemoryAreRefused",
	"memory_watch_bytes":               "TestWatchesAreBounded",
	"memory_watches_refused":           "TestWatchesAreBounded",
	"connection_drop_count":            "TestSlowReaderIsClosed and others like it, by way of overflow",
	"clients_refused_later_zxid":       "TestRefusalsAreLogged, as the other of that name",
	"clients_refused_session":          "TestRefusalsAreLogged",
	"clients_refused_malformed":        "TestRefusalsAreLogged",
	"clients_refused_read_only":        "TestReadOnlyModeWithoutLocalSessions",
	"clients_refused_unauthenticated":  "TestRefusalsAreLogged",
	"ensemble_auth_fail":               "TestBuiltInProviders",
	"ensemble_auth_skip":               "TestBuiltInProviders",
	"ensemble_auth_success":            "TestBuiltInProviders",
}

// moves records the exported metrics, and which ones the test has seen change after the
// event that they count.
type moves struct {
	mu          sync.Mutex
	seen, moved map[string]bool
	notes       map[string]bool // other lines of mntr
}

// exported returns a server's exported metrics: values by name, and the sum of each
// distribution.
func (m *moves) exported(s *Server) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	monitor := sourceOf(s).Metrics()
	for _, v := range monitor {
		if v.Kind != status.Note {
			all[v.Name] = v.Value
			m.seen[v.Name] = true
		} else {
			m.notes[v.Name] = true
		}
	}
	for _, v := range sourceOf(s).Summaries() {
		all[v.Name] = time.Duration(v.Sum * float64(time.Millisecond)).String()
		m.seen[v.Name] = true
	}
	return all
}

// by runs do and waits until all the named metrics have changed.
func (m *moves) by(t *testing.T, s *Server, names string, do func()) {
	t.Helper()
	before := m.exported(s)
	do()
	m.changed(t, before, s, names)
}

// since records that the metrics have changed since the server started.
func (m *moves) since(t *testing.T, s *Server, names string) {
	t.Helper()
	before := map[string]string{}
	for _, name := range strings.Fields(names) {
		before[name] = "0"
		if len(m.exported(s)[name]) > 1 && strings.HasSuffix(m.exported(s)[name], "s") {
			before[name] = "0s"
		}
	}
	m.changed(t, before, s, names)
}

// changed waits until the metrics of s differ from before.
func (m *moves) changed(t *testing.T, before map[string]string, s *Server, names string) {
	t.Helper()
	for _, name := range strings.Fields(names) {
		eventually(t, name+" is no longer "+before[name], func() bool {
			now, exported := m.exported(s)[name]
			return exported && now != before[name] && now != "0s"
		})
		m.mu.Lock()
		m.moved[name] = true
		m.mu.Unlock()
	}
}

// TestEveryMetricChanges checks that every exported metric changes when the event that it
// counts happens.
func TestEveryMetricChanges(t *testing.T) {
	t.Parallel()
	m := &moves{seen: map[string]bool{}, moved: map[string]bool{}, notes: map[string]bool{}}
	t.Run("each", func(t *testing.T) {
		t.Run("requests", m.requests)
		t.Run("connections", m.connections)
		t.Run("sessions", m.sessions)
		t.Run("disk", m.disk)
		t.Run("ensemble", m.ensemble)
		t.Run("snapshots", m.snapshots)
		t.Run("namespaces", m.namespaces)
		t.Run("http", m.http)
		t.Run("limits", m.limits)
	})
	for name := range m.seen {
		if metrics.Help(name) == name {
			t.Errorf("nothing says what %s is", name)
		}
		if elsewhere[name] == "" && !m.moved[name] && !mntr.AlwaysZero(name) {
			t.Errorf("nothing moves %s", name)
		}
	}
	documented(t, m.seen, m.notes)
	if len(m.seen) < 80 {
		t.Errorf("only %d numbers are exported", len(m.seen))
	}
}

// requests changes the metrics of clients' reads and writes, and of the log.
func (m *moves) requests(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	var w *wire
	m.by(t, s, `num_alive_connections global_sessions packets_sent packets_received bytes_received_count response_bytes
		connection_request_count last_client_response_size min_client_response_size max_client_response_size commit_count uptime`,
		func() { w = connect(t, s) })
	m.by(t, s, `znode_count approximate_data_size updatelatency proposal_count quorum_ack_latency propagation_latency
		prep_processor_request_queued prep_processor_queue_size prep_processor_queue_time_ms sync_processor_batch_size sync_process_time
		commit_process_time write_batch_time_in_commit_processor write_commit_proc_issued
		raft_last_log_index raft_commit_index raft_applied_index raft_log_bytes`,
		func() { w.create("/a", []byte("data"), proto.ModePersistent) })
	m.by(t, s, "ephemerals_count", func() { w.create("/e", nil, proto.ModeEphemeral) })
	m.by(t, s, "readlatency watch_count", func() { w.get("/a", true) })
	m.by(t, s, "node_changed_watch_count watch_bytes", func() {
		connect(t, s).set("/a", "x")
		w.wantEvent(proto.EventNodeDataChanged, "/a")
	})
	w.must(proto.OpGetChildren, &proto.GetChildrenRequest{Path: "/a", Watch: true})
	w.call(proto.OpExists, &proto.ExistsRequest{Path: "/a/b", Watch: true})
	m.by(t, s, "node_created_watch_count node_children_watch_count", func() {
		connect(t, s).create("/a/b", nil, proto.ModePersistent)
		w.wantEvent(proto.EventNodeCreated, "/a/b")
		w.wantEvent(proto.EventNodeChildrenChanged, "/a")
	})
	w.get("/a/b", true)
	m.by(t, s, "node_deleted_watch_count", func() {
		connect(t, s).must(proto.OpDelete, &proto.DeleteRequest{Path: "/a/b", Version: -1})
		w.wantEvent(proto.EventNodeDeleted, "/a/b")
	})
	m.by(t, s, "read_commitproc_time_ms requests_in_session_queue reads_after_write_in_session_queue reads_issued_from_session_queue", func() {
		// A read that arrives with a write nearly always finds the write in flight.
		both := appendRequest(nil, 100, proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1})
		both = appendRequest(both, 101, proto.OpGetData, &proto.GetDataRequest{Path: "/a"})
		eventually(t, "a read waits for a write", func() bool {
			w.write(both)
			w.recv()
			w.recv()
			return s.stats.ReadsAfterWrite.Snapshot(time.Now()).Count > 0
		})
	})
	m.by(t, s, "stale_replies", func() {
		eventually(t, "a reply comes too late", func() bool {
			gone := connect(t, s)
			for range 100 {
				gone.send(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Version: -1})
			}
			_ = gone.nc.Close()
			return s.stats.StaleReplies.Load() > 0
		})
	})
	// Requests here are shorter than a millisecond and can't be observed in flight.
	m.by(t, s, "avg_latency min_latency max_latency outstanding_requests", func() {
		s.stats.Reset()
		s.stats.CountLatency(1, int64(time.Hour))
		s.outstanding.Add(1)
	})
	s.outstanding.Add(-1)
}

// connections changes the metrics of connections.
func (m *moves) connections(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	s := startServer(t, func(c *Config) {
		c.ClientAddr, c.SecureAddr, c.TLS = "127.0.0.1:0", "127.0.0.1:0", &TLS{KeyStores: a.options()}
		c.Limits.MaxClientCnxns = 3
	})
	secure := s.ClientAddrs()[1]
	m.by(t, s, "unsuccessful_handshake", func() {
		plain := dialTCP(t, secure, nil)
		plain.write([]byte("ruok"))
		plain.wantClosed() // it must speak TLS there
	})
	eventually(t, "it is forgotten", func() bool { return sourceOf(s).Server().Connections == 0 })
	m.by(t, s, "auth_failed_count", func() { connect(t, s).call(proto.OpAuth, &proto.AuthPacket{Scheme: "nonsense"}) })
	var silent []net.Conn
	m.by(t, s, "outstanding_tls_handshake open_file_descriptor_count", func() {
		for range 3 {
			silent = append(silent, dialTCP(t, secure, nil).nc)
		}
		eventually(t, "three clients shake hands", func() bool { return s.stats.Handshaking.Load() == 3 })
	})
	m.by(t, s, "connection_rejected", func() { dialTCP(t, s.ClientAddrs()[0], nil).wantClosed() })
	for _, nc := range silent {
		_ = nc.Close()
	}
	w := connect(t, s)
	m.by(t, s, "connection_revalidate_count", func() { w.again(s, w.resp.Passwd) })
	m.by(t, s, "local_sessions", func() { // read-only mode has its own tests
		s.clients.mu.Lock()
		s.clients.locals[1] = [proto.PasswordSize]byte{}
		s.clients.mu.Unlock()
	})
}

// sessions changes the metrics of silent clients.
func (m *moves) sessions(t *testing.T) {
	t.Parallel()
	impatient := startServer(t, func(c *Config) { c.Limits.SessionlessTimeout = 10 * time.Millisecond })
	m.by(t, impatient, "sessionless_connections_expired", func() { dial(t, impatient).wantClosed() })
	s := startServer(t, func(c *Config) { c.TickTime = 10 * time.Millisecond })
	m.by(t, s, "stale_sessions_expired", func() {
		ask := proto.ConnectRequest{TimeOut: 1, Passwd: make([]byte, proto.PasswordSize)}
		b, mark := proto.BeginFrame(nil)
		b = proto.EndFrame(ask.Append(b), mark)
		// The reply need not arrive before the session ends, and the request need not
		// arrive before the server closes a silent client.
		eventually(t, "a session is over", func() bool {
			w := dial(t, s)
			w.write(b)
			_ = w.nc.SetReadDeadline(time.Now().Add(patience / 10))
			_, _ = io.Copy(io.Discard, w.nc)
			return m.exported(s)["stale_sessions_expired"] != "0"
		})
	})
}

// disk changes the metrics of a server with a directory, including the metrics of its start.
func (m *moves) disk(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	onDisk := func(c *Config) { c.Memory, c.DataDir, c.Log.Dir = false, dir, filepath.Join(dir, "log") }
	s := startServer(t, onDisk)
	w := connect(t, s)
	m.by(t, s, "fsynctime sync_processor_queue_flush_time_ms", func() { w.create("/a", nil, proto.ModePersistent) })
	m.by(t, s, "snapshottime raft_snapshot_index raft_snapshot_bytes", func() {
		if err := s.Node().Snapshot(); err != nil {
			t.Error(err)
		}
	})
	w.set("/a", "later than the snapshot")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = startServer(t, onDisk)
	connect(t, s)
	m.since(t, s, "dbinittime startup_snap_load_time startup_txns_load_time startup_txns_loaded unavailable_time")
}

// ensemble changes the metrics of leaders, followers and observers.
func (m *moves) ensemble(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 4, withObserver)
	leader, others := e.leader()
	observer := e.servers[3]
	follower := others[slices.IndexFunc(others, func(s *Server) bool { return s != observer })]
	const received = `proposal_latency proposal_ack_creation_latency commit_propagation_latency
		learner_proposal_received_count learner_commit_received_count`
	w := connect(t, leader)
	m.by(t, follower, received, func() { w.create("/a", nil, proto.ModePersistent) })
	m.by(t, leader, "ack_latency leader_uptime last_proposal_size", func() { w.set("/a", "x") })
	m.since(t, leader, "diff_count leader_unavailable_time synced_followers synced_observers learners")
	m.changed(t, map[string]string{"min_proposal_size": "-1"}, leader, "min_proposal_size")
	m.since(t, follower, "follower_sync_time election_time raft_contact_ms")
	m.since(t, observer, "observer_sync_time")
	m.by(t, leader, "max_proposal_size", func() { w.set("/a", strings.Repeat("x", 1000)) })
	m.by(t, follower, "revalidate_count", func() { w.again(follower, w.resp.Passwd) })
	m.by(t, leader, "pending_syncs", func() { leader.stats.Syncs.Add(1) }) // a sync is too short to observe
	leader.stats.Syncs.Add(-1)

	two := startEnsemble(t, 2)
	smaller, _ := two.leader()
	m.changed(t, m.exported(leader), smaller, "raft_servers raft_voters quorum_size")

	lonely := startServer(t, alone)
	m.by(t, lonely, "cnxn_closed_without_zk_server_running", func() {
		alone := dial(t, lonely)
		req := proto.ConnectRequest{TimeOut: 1, Passwd: make([]byte, proto.PasswordSize)}
		alone.write(proto.AppendFrame(nil, req.Append(nil)))
		alone.wantClosed()
	})
	m.by(t, follower, "raft_term", func() {
		if err := leader.Node().Transfer(t.Context()); err != nil {
			t.Error(err)
		}
	})
	m.by(t, follower, "looking_count", func() {
		for _, s := range e.servers {
			if s != follower {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// snapshots changes the metrics of a leader that sends its state to a server without
// one, because the log doesn't reach back far enough.
func (m *moves) snapshots(t *testing.T) {
	t.Parallel()
	e := startEnsemble(t, 3, func(c *Config) { c.Log.SnapTrailing = 1 })
	leader, others := e.leader()
	lost := others[0]
	if err := lost.Close(); err != nil {
		t.Fatal(err)
	}
	w := connect(t, leader)
	for range 10 {
		w.set("/", "x")
	}
	if err := leader.Node().Snapshot(); err != nil {
		t.Fatal(err)
	}
	m.by(t, leader, "snap_count inflight_snap_count", func() { startServer(t, func(c *Config) { *c = lost.cfg }) })
}

// namespaces changes the metrics by child of the root.
func (m *moves) namespaces(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) { c.Znodes.EnforceQuota = true })
	w := connect(t, s)
	w.create("/a", nil, proto.ModePersistent)
	m.since(t, s, "write_per_namespace")
	for _, path := range []string{"/zookeeper/quota/a", "/zookeeper/quota/a/zookeeper_limits", "/zookeeper/quota/a/zookeeper_stats"} {
		w.create(path, []byte("count=3,bytes=40=;byteHardLimit=50;countHardLimit=4"), proto.ModePersistent)
	}
	w.set("/a", "bytes")
	w.get("/a", false)
	m.since(t, s, `read_per_namespace quota_count_limit_per_namespace quota_bytes_limit_per_namespace
		quota_count_usage_per_namespace quota_bytes_usage_per_namespace`)
	m.by(t, s, "quota_exceeded_error_per_namespace", func() {
		w.call(proto.OpSetData, &proto.SetDataRequest{Path: "/a", Data: make([]byte, 100), Version: -1})
	})
}

// http changes the AdminServer's metrics of snapshots and restores.
func (m *moves) http(t *testing.T) {
	t.Parallel()
	s := startServer(t, func(c *Config) {
		c.Admin = &Admin{Addr: "127.0.0.1:0"}
		c.Admin.SnapshotInterval, c.Admin.RestoreInterval = time.Hour, time.Hour
	})
	base := "http://" + s.AdminAddr() + "/commands/"
	for _, v := range []struct{ method, command, names string }{
		{"GET", "snapshot", "snapshot_rate_limited_count"}, {"POST", "restore", "restore_rate_limited_count"},
	} {
		m.by(t, s, v.names, func() {
			eventually(t, v.command+" comes too early", func() bool {
				code, _, body := askState(t, v.method, base+v.command, superAuth, nil)
				t.Logf("%s: %d %.100s", v.command, code, body)
				return code == http.StatusTooManyRequests
			})
		})
	}
	m.since(t, s, "restore_error_count")
	willing := startServer(t, withAdmin)
	<-willing.Ready()
	m.by(t, willing, "restore_time", func() {
		if code, a := sendState(t, willing, "restore", snapshotWith(t, "x")); code != http.StatusOK {
			t.Errorf("%d %+v", code, a)
		}
	})
	lonely := startServer(t, alone, func(c *Config) { c.Admin = &Admin{Addr: "127.0.0.1:0"} })
	m.by(t, lonely, "snapshot_error_count", func() {
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if e, err := adminSourceOf(lonely).Export(over); err == nil {
			_ = e.Content.Close()
			t.Error("a server without an ensemble gives out a snapshot")
		}
	})
}

// alone makes a server one of two; the other never starts.
func alone(c *Config) {
	c.TickTime = 10 * time.Millisecond
	c.Quorum.ID, c.Env.Network, c.Quorum.Members = 1, quorum.NewMemory().Host("lonely"), []raftfsm.Member{
		{ID: 1, QuorumAddr: "lonely:1", ElectionAddr: "lonely:2"}, {ID: 2, QuorumAddr: "nowhere:1", ElectionAddr: "nowhere:2"},
	}
}

// limits changes the metrics of limits.
func (m *moves) limits(t *testing.T) {
	t.Parallel()
	throttled := startServer(t, func(c *Config) { c.Limits.RequestThrottle = RequestThrottle{OpWait: 1} })
	w := connect(t, throttled)
	m.by(t, throttled, "throttled_ops request_throttle_queue_time_ms", func() {
		w.call(proto.OpExists, &proto.ExistsRequest{Path: "/"})
	})
	turning := startServer(t, func(c *Config) {
		c.Limits.ConnThrottle = &ConnThrottle{Tokens: 2, FillTime: 1000 * time.Hour, FillCount: 1, FreezeTime: -1, New: 1, Renewed: 1}
	})
	m.by(t, turning, "connection_token_deficit", func() { connect(t, turning) })
	m.by(t, turning, "connection_drop_probability", func() {
		turning.tokens = quarterRejected()
	})
	full := startServer(t)
	full.memory = limits.NewMemory(1<<40, full.log)
	m.exported(full)
	m.exported(startServer(t, func(c *Config) { c.Limits.LargeRequestAbove = 100 }))
}
