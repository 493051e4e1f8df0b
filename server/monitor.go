package server

import (
	"strconv"
	"time"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/internal/ops/status"
)

// monitor collects the lines of mntr.
type monitor []status.Metric

func (m *monitor) add(kind status.MetricKind, name, value string) {
	*m = append(*m, status.Metric{Name: name, Value: value, Kind: kind})
}

// keyed adds the metric of one of several named objects, unless n is negative.
func (m *monitor) keyed(kind status.MetricKind, key, name string, n int64) {
	if n >= 0 {
		*m = append(*m, status.Metric{Name: name, Key: key, Value: strconv.FormatInt(n, 10), Kind: kind})
	}
}

func (m *monitor) text(name, value string)    { m.add(status.Note, name, value) }
func (m *monitor) int(name string, n int64)   { m.add(status.Gauge, name, strconv.FormatInt(n, 10)) }
func (m *monitor) count(name string, n int64) { m.add(status.Counter, name, strconv.FormatInt(n, 10)) }

// Metrics implements status.Source: ZooKeeper's names in its order.
func (v picture) Metrics() []status.Metric {
	p := v.Server()
	var m monitor
	m.text("version", p.Version)
	m.text("server_state", p.Mode)
	switch p.Mode {
	case "leader":
		m.text("peer_state", "leading - broadcast")
	case "follower":
		m.text("peer_state", "following - broadcast")
	case "observer":
		m.text("peer_state", "observing - broadcast")
	}
	m.int("ephemerals_count", int64(p.Ephemerals))
	m.int("num_alive_connections", int64(p.Connections))
	m.add(status.Gauge, "avg_latency", fourletter.Float(p.LatencyAvg))
	m.int("outstanding_requests", p.Outstanding)
	m.int("znode_count", int64(p.Nodes))
	m.int("global_sessions", int64(p.GlobalSessions))
	m.int("non_mtls_remote_conn_count", 0)
	m.int("last_client_response_size", p.LastReply)
	m.int("packets_sent", p.Sent)
	m.int("packets_received", p.Received)
	m.int("max_client_response_size", p.MaxReply)
	m.add(status.Gauge, "connection_drop_probability", v.s.dropProbability())
	m.int("watch_count", int64(p.WatchCount))
	m.int("auth_failed_count", p.AuthFailed)
	m.int("min_latency", p.LatencyMin)
	m.int("max_file_descriptor_count", p.MaxFDs)
	m.int("approximate_data_size", p.DataSize)
	m.int("open_file_descriptor_count", p.OpenFDs)
	m.int("local_sessions", int64(p.LocalSessions))
	m.int("uptime", p.Uptime.Milliseconds())
	m.int("max_latency", p.LatencyMax)
	m.int("outstanding_tls_handshake", v.s.stats.handshaking.Load())
	m.int("min_client_response_size", p.MinReply)
	m.int("non_mtls_local_conn_count", 0)
	if v.s.cfg.distributed() {
		m.int("quorum_size", int64(p.QuorumSize))
	}
	if p.Leads {
		v.leading(&m, p)
	}
	differs := int64(0)
	if p.FileDiffers != "" {
		differs = 1
	}
	m.int("config_file_differs", differs)
	m.int("behaviour_level", int64(p.Level))
	m.int("behaviour_level_known", int64(p.Newest))
	v.counters(&m)
	v.raft(&m)
	v.perNamespace(&m)
	m.limits(v.s)
	m.complete(v.Summaries())
	return m
}

// leading adds what only a leader knows. ZooKeeper no longer has zk_followers, but its
// guide still lists it and tools ask for it.
func (v picture) leading(m *monitor, p status.Server) {
	m.text("followers", strconv.Itoa(p.Learners))
	m.int("learners", int64(p.Learners))
	m.int("synced_followers", int64(p.SyncedFollowers))
	m.int("synced_observers", int64(p.SyncedObservers))
	m.int("synced_non_voting_followers", 0)
	m.int("pending_syncs", v.s.stats.syncs.Load())
	m.int("leader_uptime", int64(p.LeaderUptime/time.Millisecond))
	m.int("last_proposal_size", p.LastProposal)
	m.int("min_proposal_size", p.MinProposal)
	m.int("max_proposal_size", p.MaxProposal)
}

// summary adds the lines of a distribution, in whole milliseconds except for the
// average. If there are several of one name, the key comes before the name.
func (m *monitor) summary(s *status.Summary) {
	name := s.Name
	if s.Key != "" {
		name = status.Plain(s.Key) + "_" + name
	}
	m.text("avg_"+name, fourletter.Float(s.Mean))
	for _, line := range []struct {
		name  string
		value float64
	}{
		{"min", s.Min}, {"max", s.Max}, {"cnt", float64(s.Count)}, {"sum", s.Sum},
		{"p50", s.P50}, {"p95", s.P95}, {"p99", s.P99}, {"p999", s.P999},
	} {
		if s.Basic && line.name[0] == 'p' {
			continue
		}
		m.text(line.name+"_"+name, strconv.FormatInt(int64(line.value), 10))
	}
}
