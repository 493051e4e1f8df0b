package monitor

import (
	"strconv"
	"time"

	"github.com/zkgo/zkgo/internal/limits"
	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/internal/ops/mntr"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/watch"
)

// View is the source of a server's metrics.
type View struct {
	State      func() status.Server
	Stats      *stats.Server
	Namespaces *stats.Namespaces
	Node       *raftfsm.Node
	Watches    *watch.Table
	Memory     *limits.Memory          // nil: no ceiling
	Tokens     *limits.SessionThrottle // nil: no limit

	// Observers returns the observers at the observerMasterPort; nil: there is no such port.
	Observers func() []status.Observer

	// The configured features: metrics of any others would only be noise.
	Distributed    bool // an ensemble
	InMemory       bool
	Admin          bool // commands over HTTP
	EnsembleScheme bool
	LargeRequests  bool // bounded
	Throttles      bool // requests
}

// Metrics implements status.Source: ZooKeeper's names in its order.
func (v View) Metrics() []status.Metric {
	p := v.State()
	var m mntr.Lines
	m.Text("version", p.Version)
	m.Text("server_state", p.Mode)
	switch p.Mode {
	case "leader":
		m.Text("peer_state", "leading - broadcast")
	case "follower":
		m.Text("peer_state", "following - broadcast")
	case "observer":
		m.Text("peer_state", "observing - broadcast")
	}
	m.Int("ephemerals_count", int64(p.Ephemerals))
	m.Int("num_alive_connections", int64(p.Connections))
	m.Add(status.Gauge, "avg_latency", fourletter.Float(p.LatencyAvg))
	m.Int("outstanding_requests", p.Outstanding)
	m.Int("znode_count", int64(p.Nodes))
	m.Int("global_sessions", int64(p.GlobalSessions))
	m.Int("non_mtls_remote_conn_count", 0)
	m.Int("last_client_response_size", p.LastReply)
	m.Int("packets_sent", p.Sent)
	m.Int("packets_received", p.Received)
	m.Int("max_client_response_size", p.MaxReply)
	m.Add(status.Gauge, "connection_drop_probability", v.dropProbability())
	m.Int("watch_count", int64(p.WatchCount))
	m.Int("auth_failed_count", p.AuthFailed)
	m.Int("min_latency", p.LatencyMin)
	m.Int("max_file_descriptor_count", p.MaxFDs)
	m.Int("approximate_data_size", p.DataSize)
	m.Int("open_file_descriptor_count", p.OpenFDs)
	m.Int("local_sessions", int64(p.LocalSessions))
	m.Int("uptime", p.Uptime.Milliseconds())
	m.Int("max_latency", p.LatencyMax)
	m.Int("outstanding_tls_handshake", v.Stats.Handshaking.Load())
	m.Int("min_client_response_size", p.MinReply)
	m.Int("non_mtls_local_conn_count", 0)
	if v.Distributed {
		m.Int("quorum_size", int64(p.QuorumSize))
	}
	if p.Leads {
		v.leading(&m, p)
	}
	v.observers(&m, p)
	differs := int64(0)
	if p.FileDiffers != "" {
		differs = 1
	}
	m.Int("config_file_differs", differs)
	m.Int("behaviour_level", int64(p.Level))
	m.Int("behaviour_level_known", int64(p.Newest))
	v.mirror(&m)
	n := v.Node.Numbers()
	v.counters(&m, &n)
	v.raft(&m, &n)
	v.perNamespace(&m)
	v.limits(&m)
	m.Complete(v.summaries(&n))
	return m
}

// leading adds the metrics that only a leader knows. ZooKeeper no longer has zk_followers,
// but its guide still lists it and tools ask for it.
func (v View) leading(m *mntr.Lines, p status.Server) {
	m.Text("followers", strconv.Itoa(p.Learners))
	m.Int("learners", int64(p.Learners))
	m.Int("synced_followers", int64(p.SyncedFollowers))
	m.Int("synced_observers", int64(p.SyncedObservers))
	m.Int("synced_non_voting_followers", 0)
	m.Int("pending_syncs", v.Stats.Syncs.Load())
	m.Int("leader_uptime", int64(p.LeaderUptime/time.Millisecond))
	m.Int("last_proposal_size", p.LastProposal)
	m.Int("min_proposal_size", p.MinProposal)
	m.Int("max_proposal_size", p.MaxProposal)
}

// observers adds the observers at the observerMasterPort. ZooKeeper shows their number on a
// follower, too.
func (v View) observers(m *mntr.Lines, p status.Server) {
	if v.Observers == nil {
		return
	}
	if !p.Leads {
		m.Int("synced_observers", int64(p.SyncedObservers))
	}
	for _, o := range v.Observers() {
		m.Keyed(status.Gauge, o.Name, "observer_master_lag_transactions", o.LagTransactions)
		m.Keyed(status.Gauge, o.Name, "observer_master_lag_milliseconds", o.LagMillis)
	}
}

// mirror adds the progress of a server that follows another ensemble, or has replaced one.
func (v View) mirror(m *mntr.Lines) {
	state, mark, zxid := v.Node.Mirroring().State()
	if state.Phase == mirrored.None {
		return
	}
	flag := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	m.Int("mirror_phase", int64(state.Phase))
	if state.Phase != mirrored.Following {
		return
	}
	m.Int("mirror_broken", flag(state.Broken != ""))
	m.Int("mirror_in_sync", flag(mark.InSync && state.Broken == ""))
	m.Int("mirror_lag_transactions", max(0, mark.Proposed-zxid))
	m.Int("mirror_lag_milliseconds", max(0, time.Since(time.UnixMilli(mark.Time)).Milliseconds()))
	m.Int("mirror_digests_compared", v.Node.Mirroring().Compared())
}
