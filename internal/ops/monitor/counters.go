package monitor

import (
	"strconv"

	"github.com/zkgo/zkgo/internal/ops/fourletter"
	"github.com/zkgo/zkgo/internal/ops/mntr"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/raftfsm"
)

// limits adds the metrics that show whether a configured limit affects clients.
func (v View) limits(m *mntr.Lines) {
	st := v.Stats
	if v.LargeRequests {
		m.Count("large_requests_rejected", st.LargeRejected.Load())
	}
	if v.Throttles {
		m.Count("request_throttle_wait_count", st.ThrottleWaits.Load())
		m.Count("stale_requests_dropped", st.StaleDropped.Load())
		m.Count("throttled_ops", st.ThrottledOps.Load())
	}
	if g := v.Memory; g != nil {
		m.Int("memory_ceiling_bytes", g.Ceiling)
		m.Int("memory_used_bytes", g.Used.Load())
		full := int64(0)
		if g.Full.Load() {
			full = 1
		}
		m.Int("memory_full", full)
		m.Count("memory_writes_refused", g.Refused.Load())
		m.Int("memory_watch_bytes", v.Watches.Held())
		m.Count("memory_watches_refused", st.WatchesRefused.Load())
	}
}

// dropProbability is the probability that a new client is rejected now.
func (v View) dropProbability() string {
	chance, _ := v.Tokens.State()
	return fourletter.Float(chance)
}

// counters adds the values that only increase, until srst resets them.
func (v View) counters(m *mntr.Lines, n *raftfsm.Numbers) {
	st := v.Stats
	m.Count("connection_rejected", st.Rejected.Load())
	m.Count("sessionless_connections_expired", st.Expired.Load())
	m.Count("connection_drop_count", st.Dropped.Load())
	m.Count("connection_revalidate_count", st.Revalidated.Load())
	m.Count("unsuccessful_handshake", st.HandshakesFailed.Load())
	m.Count("commit_count", st.Commits.Load())
	m.Count("connection_request_count", st.Connects.Load())
	m.Count("bytes_received_count", st.BytesIn.Load())
	m.Count("response_bytes", st.BytesOut.Load())
	m.Count("watch_bytes", st.BytesEvents.Load())
	m.Count("stale_replies", st.StaleReplies.Load())
	m.Count("cnxn_closed_without_zk_server_running", st.TurnedAway.Load())
	m.Count("clients_refused_later_zxid", st.SeenLater.Load())
	m.Count("clients_refused_session", st.Unproved.Load())
	m.Count("clients_refused_unauthenticated", st.Unauthenticated.Load())
	m.Count("clients_refused_malformed", st.Malformed.Load())
	m.Count("clients_refused_read_only", st.ReadOnlyRefused.Load())
	if v.EnsembleScheme {
		m.Count("ensemble_auth_fail", st.EnsembleFail.Load())
		m.Count("ensemble_auth_skip", st.EnsembleSkip.Load())
		m.Count("ensemble_auth_success", st.EnsembleSuccess.Load())
	}
	m.Count("stale_sessions_expired", n.State.Expired)
	m.Count("prep_processor_request_queued", n.Proposing.Queued)
	m.Count("proposal_count", v.Node.ProposalSizes().Commands)
	m.Count("raft_log_bytes", n.Log.Bytes)
	if v.Admin {
		m.Count("snapshot_error_count", st.SnapshotErrors.Load())
		m.Count("snapshot_rate_limited_count", st.SnapshotsTooEarly.Load())
		m.Count("restore_error_count", st.RestoreErrors.Load())
		m.Count("restore_rate_limited_count", st.RestoresTooEarly.Load())
	}
	if v.Distributed {
		m.Count("looking_count", st.Looking.Load())
		m.Count("revalidate_count", st.Asked.Load())
		m.Count("learner_proposal_received_count", n.Proposing.Received)
		m.Count("learner_commit_received_count", n.Proposing.Committed)
		m.Count("diff_count", n.Others.Diffs)
		m.Count("snap_count", n.Others.SnapsSent.Count)
	}
}

// raft adds the state of the log, for which ZooKeeper has no names.
func (v View) raft(m *mntr.Lines, n *raftfsm.Numbers) {
	s, ok := v.Node.RaftState()
	if !ok {
		return
	}
	m.Int("raft_term", int64(s.Term))
	m.Int("raft_last_log_index", int64(s.Last))
	m.Int("raft_commit_index", int64(s.Committed))
	m.Int("raft_applied_index", int64(s.Applied))
	m.Int("raft_snapshot_index", int64(s.SnapshotIndex))
	m.Int("raft_snapshot_bytes", n.State.SnapSize)
	if v.Distributed {
		m.Int("raft_servers", int64(s.Servers))
		m.Int("raft_voters", int64(s.Voters))
		m.Count("raft_messages_refused", v.Node.RefusedMessages())
		m.Add(status.Gauge, "raft_contact_ms", strconv.FormatInt(s.Contact.Milliseconds(), 10))
	}
}
