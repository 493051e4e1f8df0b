package server

import (
	"strconv"
	"time"

	"github.com/zkgo/zkgo/server/fourletter"
	"github.com/zkgo/zkgo/server/status"
)

// monitor collects the lines of mntr.
type monitor []status.Metric

func (m *monitor) text(name, value string)  { *m = append(*m, status.Metric{Name: name, Value: value}) }
func (m *monitor) int(name string, n int64) { m.text(name, strconv.FormatInt(n, 10)) }

// Metrics implements status.Source: ZooKeeper's names, in its order, as far as
// they mean something here.
func (v picture) Metrics() []status.Metric {
	p := v.Server()
	st := &v.s.stats
	var m monitor
	m.text("version", p.Version)
	m.text("server_state", p.Mode)
	switch p.Mode {
	case "follower":
		m.text("peer_state", "following - broadcast")
	case "observer":
		m.text("peer_state", "observing - broadcast")
	}
	m.int("ephemerals_count", int64(p.Ephemerals))
	m.int("num_alive_connections", int64(p.Connections))
	m.text("avg_latency", fourletter.Float(p.LatencyAvg))
	m.int("outstanding_requests", p.Outstanding)
	m.int("znode_count", int64(p.Nodes))
	m.int("global_sessions", int64(p.GlobalSessions))
	m.int("non_mtls_remote_conn_count", 0)
	m.int("last_client_response_size", p.LastReply)
	m.int("packets_sent", p.Sent)
	m.int("packets_received", p.Received)
	m.int("max_client_response_size", p.MaxReply)
	m.text("connection_drop_probability", "0.0")
	m.int("watch_count", int64(p.WatchCount))
	m.int("auth_failed_count", p.AuthFailed)
	m.int("min_latency", p.LatencyMin)
	m.int("max_file_descriptor_count", p.MaxFDs)
	m.int("approximate_data_size", p.DataSize)
	m.int("open_file_descriptor_count", p.OpenFDs)
	m.int("local_sessions", int64(p.LocalSessions))
	m.int("uptime", p.Uptime.Milliseconds())
	m.int("max_latency", p.LatencyMax)
	m.int("outstanding_tls_handshake", st.handshaking.Load())
	m.int("min_client_response_size", p.MinReply)
	m.int("non_mtls_local_conn_count", 0)
	if p.Leads {
		v.leading(&m, p)
	}
	m.int("connection_rejected", st.rejected.Load())
	m.int("connection_drop_count", st.dropped.Load())
	m.int("unsuccessful_handshake", st.handshakesFailed.Load())
	m.int("sessionless_connections_expired", st.expired.Load())
	return m
}

// leading adds what only a leader knows. zk_followers is gone from ZooKeeper,
// but its guide still lists it and tools ask for it.
func (v picture) leading(m *monitor, p status.Server) {
	m.int("followers", int64(p.Learners))
	m.int("learners", int64(p.Learners))
	m.int("synced_followers", int64(p.SyncedFollowers))
	m.int("synced_observers", int64(p.SyncedObservers))
	m.int("synced_non_voting_followers", 0)
	m.int("pending_syncs", 0)
	m.int("quorum_size", int64(p.QuorumSize))
	m.int("leader_uptime", int64(p.LeaderUptime/time.Millisecond))
	m.int("last_proposal_size", p.LastProposal)
	m.int("min_proposal_size", p.MinProposal)
	m.int("max_proposal_size", p.MaxProposal)
}
