package server

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/internal/histogram"
	"github.com/zkgo/zkgo/internal/ops/mntr"
	"github.com/zkgo/zkgo/internal/ops/status"
)

// distribution is a measured quantity under one of ZooKeeper's names. Two names may
// show the same quantity.
type distribution struct {
	name  string
	of    *histogram.Summary
	unit  int64 // of the values shown, in units of the values observed
	basic bool  // mntr shows no percentiles
}

// distributions lists the distributions that this server can have observed.
func (s *Server) distributions() []distribution {
	st, n := &s.stats, s.node.Numbers()
	list := []distribution{
		{"node_created_watch_count", &st.watchers[0], 1, true},
		{"node_deleted_watch_count", &st.watchers[1], 1, true},
		{"node_changed_watch_count", &st.watchers[2], 1, true},
		{"node_children_watch_count", &st.watchers[3], 1, true},
		{"updatelatency", &st.updates, millisecond, false},
		{"readlatency", &st.reads, millisecond, false},
		{"unavailable_time", &st.unavailable, millisecond, true},

		{"read_commitproc_time_ms", &st.waited, millisecond, false},
		{"requests_in_session_queue", &st.queued, 1, true},
		{"reads_after_write_in_session_queue", &st.behind, 1, true},
		{"reads_issued_from_session_queue", &st.behind, 1, true},

		{"prep_processor_queue_size", &n.Waiting, 1, true},
		{"prep_processor_queue_time_ms", &n.QueueTime, millisecond, false},
		{"sync_processor_batch_size", &n.Entries, 1, true},
		{"sync_process_time", &n.Append, millisecond, true},
		{"sync_processor_queue_flush_time_ms", &n.Fsync, millisecond, false},
		{"fsynctime", &n.Fsync, millisecond, true},
		{"quorum_ack_latency", &n.QuorumAck, millisecond, false},
		{"propagation_latency", &n.ToApply, millisecond, false},
		{"commit_process_time", &n.Apply, millisecond, true},
		{"write_batch_time_in_commit_processor", &n.Apply, millisecond, true},
		{"write_commit_proc_issued", &n.Entries, 1, true},

		{"dbinittime", &n.Init, millisecond, true},
		{"startup_txns_load_time", &n.TxnsLoad, millisecond, true},
		{"startup_txns_loaded", &n.TxnsHeld, 1, true},
	}
	if s.cfg.Admin != nil {
		list = append(list, distribution{"restore_time", &st.restores, millisecond, true})
	}
	if s.throttle != nil {
		list = append(list, distribution{"request_throttle_queue_time_ms", &st.throttleQueue, millisecond, false})
	}
	if s.tokens != nil {
		list = append(list, distribution{"connection_token_deficit", &st.tokenDeficit, 1, true})
	}
	if !s.cfg.Memory || s.cfg.distributed() {
		list = append(list, distribution{"snapshottime", &n.Snapshot, millisecond, true})
	}
	if !s.cfg.Memory {
		list = append(list, distribution{"startup_snap_load_time", &n.SnapLoad, millisecond, true})
	}
	if s.cfg.distributed() {
		list = append(list,
			distribution{"election_time", &st.elections, millisecond, true},
			distribution{"leader_unavailable_time", &st.leaderless, millisecond, true},
			distribution{"follower_sync_time", &st.syncTimes, millisecond, true},
			distribution{"observer_sync_time", &st.obsSyncs, millisecond, true},
			distribution{"proposal_latency", &n.ToFollower, millisecond, false},
			distribution{"proposal_ack_creation_latency", &n.ToDisk, millisecond, false},
			distribution{"commit_propagation_latency", &n.ToCommit, millisecond, false},
			distribution{"inflight_snap_count", &n.SnapsSent, 1, true},
		)
	}
	return list
}

// Summaries implements metrics.Source.
func (v picture) Summaries() []status.Summary {
	now := time.Now()
	var sums []status.Summary
	for _, d := range v.s.distributions() {
		sums = append(sums, d.at(now))
	}
	sums = append(sums, v.namespaces(now)...)
	acks := v.s.node.Numbers().Acks.All()
	for _, id := range slices.Sorted(maps.Keys(acks)) {
		s := distribution{"ack_latency", acks[id], millisecond, false}.at(now)
		s.Key = strconv.FormatUint(id, 10)
		sums = append(sums, s)
	}
	return mntr.Completed(sums)
}

// namespaces returns the summaries of accesses by child of the root.
func (v picture) namespaces(now time.Time) (sums []status.Summary) {
	v.s.spaces.each(func(n *namespace) {
		for _, d := range []distribution{{"read_per_namespace", &n.reads, 1, true}, {"write_per_namespace", &n.writes, 1, true}} {
			if s := d.at(now); s.Count > 0 {
				s.Key = n.name
				sums = append(sums, s)
			}
		}
	})
	slices.SortFunc(sums, func(a, b status.Summary) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Key, b.Key)) })
	return sums
}

// quotasAtOnce is how many quotas are read without releasing the tree's lock.
const quotasAtOnce = 256

// perNamespace adds quotas, their usage and the writes that they refused. Quotas below
// the same child of the root are summed. Like the accesses, they are shown for at most
// maxNamespaces children with names of at most maxNamespaceName bytes.
func (v picture) perNamespace(m *mntr.Lines) {
	type use struct{ countLimit, bytesLimit, count, bytes, refused int64 }
	all := map[string]*use{}
	of := func(name string) *use {
		if all[name] == nil {
			if len(all) >= maxNamespaces || len(name) > maxNamespaceName {
				return new(use) // not shown
			}
			all[name] = &use{countLimit: -1, bytesLimit: -1, count: -1, bytes: -1}
		}
		return all[name]
	}
	add := func(to *int64, n int64) {
		if n >= 0 {
			*to = max(*to, 0) + n
		}
	}
	t := v.s.tree
	t.RLock()
	paths := t.QuotaPaths()
	t.RUnlock()
	slices.Sort(paths)
	for some := range slices.Chunk(paths, quotasAtOnce) {
		t.RLock()
		for _, path := range some {
			name := namespaceOf(path)
			if q, ok := t.Quota(path); ok && name != "" {
				u := of(name)
				add(&u.countLimit, q.CountLimit)
				add(&u.bytesLimit, q.BytesLimit)
				add(&u.count, q.Count)
				add(&u.bytes, q.Bytes)
			}
		}
		t.RUnlock()
	}
	v.s.spaces.each(func(n *namespace) {
		if refused := n.overQuota.Load(); refused > 0 {
			of(n.name).refused = refused
		}
	})
	for _, name := range slices.Sorted(maps.Keys(all)) {
		u := all[name]
		m.Keyed(status.Gauge, name, "quota_count_limit_per_namespace", u.countLimit)
		m.Keyed(status.Gauge, name, "quota_bytes_limit_per_namespace", u.bytesLimit)
		m.Keyed(status.Gauge, name, "quota_count_usage_per_namespace", u.count)
		m.Keyed(status.Gauge, name, "quota_bytes_usage_per_namespace", u.bytes)
		m.Keyed(status.Counter, name, "quota_exceeded_error_per_namespace", u.refused)
	}
}

// at returns the summary of what was observed up to now.
func (d distribution) at(now time.Time) status.Summary {
	p := d.of.Snapshot(now)
	in := func(n int64) float64 { return float64(n) / float64(d.unit) }
	return status.Summary{
		Name: d.name, Basic: d.basic, Count: p.Count, Sum: in(p.Sum), Min: in(p.Min), Max: in(p.Max), Mean: p.Mean() / float64(d.unit),
		P50: in(p.Quantile(0.5)), P90: in(p.Quantile(0.9)), P95: in(p.Quantile(0.95)),
		P99: in(p.Quantile(0.99)), P999: in(p.Quantile(0.999)),
	}
}

// counters adds the values that only increase, until srst resets them.
func (v picture) counters(m *mntr.Lines) {
	st, n := &v.s.stats, v.s.node.Numbers()
	m.Count("connection_rejected", st.rejected.Load())
	m.Count("sessionless_connections_expired", st.expired.Load())
	m.Count("connection_drop_count", st.dropped.Load())
	m.Count("connection_revalidate_count", st.revalidated.Load())
	m.Count("unsuccessful_handshake", st.handshakesFailed.Load())
	m.Count("commit_count", st.commits.Load())
	m.Count("connection_request_count", st.connects.Load())
	m.Count("bytes_received_count", st.bytesIn.Load())
	m.Count("response_bytes", st.bytesOut.Load())
	m.Count("watch_bytes", st.bytesEvents.Load())
	m.Count("stale_replies", st.staleReplies.Load())
	m.Count("cnxn_closed_without_zk_server_running", st.turnedAway.Load())
	m.Count("clients_refused_later_zxid", st.seenLater.Load())
	m.Count("clients_refused_session", st.unproved.Load())
	m.Count("clients_refused_unauthenticated", st.unauthenticated.Load())
	m.Count("clients_refused_malformed", st.malformed.Load())
	m.Count("clients_refused_read_only", st.readOnlyRefused.Load())
	if v.s.cfg.ensembleScheme() {
		m.Count("ensemble_auth_fail", st.ensembleFail.Load())
		m.Count("ensemble_auth_skip", st.ensembleSkip.Load())
		m.Count("ensemble_auth_success", st.ensembleSuccess.Load())
	}
	m.Count("stale_sessions_expired", n.Expired.Load())
	m.Count("prep_processor_request_queued", n.Queued.Load())
	m.Count("proposal_count", v.s.node.ProposalSizes().Commands)
	m.Count("raft_log_bytes", n.Bytes.Load())
	if v.s.cfg.Admin != nil {
		m.Count("snapshot_error_count", st.snapshotErrors.Load())
		m.Count("snapshot_rate_limited_count", st.snapshotsTooEarly.Load())
		m.Count("restore_error_count", st.restoreErrors.Load())
		m.Count("restore_rate_limited_count", st.restoresTooEarly.Load())
	}
	if v.s.cfg.distributed() {
		m.Count("looking_count", st.looking.Load())
		m.Count("revalidate_count", st.asked.Load())
		m.Count("learner_proposal_received_count", n.Received.Load())
		m.Count("learner_commit_received_count", n.Committed.Load())
		m.Count("diff_count", n.Diffs.Load())
		m.Count("snap_count", n.SnapsSent.Snapshot(time.Now()).Count)
	}
}

// raft adds the state of the log, for which ZooKeeper has no names.
func (v picture) raft(m *mntr.Lines) {
	s, ok := v.s.node.RaftState()
	if !ok {
		return
	}
	m.Int("raft_term", int64(s.Term))
	m.Int("raft_last_log_index", int64(s.Last))
	m.Int("raft_commit_index", int64(s.Committed))
	m.Int("raft_applied_index", int64(s.Applied))
	m.Int("raft_snapshot_index", int64(s.SnapshotIndex))
	m.Int("raft_snapshot_bytes", v.s.node.Numbers().SnapSize.Load())
	if v.s.cfg.distributed() {
		m.Int("raft_servers", int64(s.Servers))
		m.Int("raft_voters", int64(s.Voters))
		m.Count("raft_messages_refused", v.s.node.RefusedMessages())
		m.Add(status.Gauge, "raft_contact_ms", strconv.FormatInt(s.Contact.Milliseconds(), 10))
	}
}
