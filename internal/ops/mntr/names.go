package mntr

import (
	"slices"
	"strings"

	"github.com/zkgo/zkgo/internal/ops/status"
)

// Every ZooKeeper 3.9 server shows these metrics, regardless of its role and load, and
// checks and dashboards read them. If we don't count something, we show 0.
const (
	// Counters that zkgo counts on other servers, or with other settings.
	zooKeeperCounters = `bytes_received_count cnxn_closed_without_zk_server_running commit_count connection_drop_count connection_rejected
		connection_request_count connection_revalidate_count diff_count ensemble_auth_fail ensemble_auth_skip
		ensemble_auth_success large_requests_rejected learner_commit_received_count learner_proposal_received_count
		looking_count prep_processor_request_queued proposal_count request_throttle_wait_count response_bytes
		restore_error_count restore_rate_limited_count revalidate_count sessionless_connections_expired snap_count
		snapshot_error_count snapshot_rate_limited_count stale_replies stale_requests_dropped stale_sessions_expired
		throttled_ops unsuccessful_handshake watch_bytes`
	// Distributions without percentiles in mntr, and with percentiles.
	zooKeeperBasic = `commit_process_time connection_token_deficit dbinittime election_time follower_sync_time fsynctime inflight_snap_count
		leader_unavailable_time node_changed_watch_count node_children_watch_count node_created_watch_count
		node_deleted_watch_count observer_sync_time prep_processor_queue_size reads_after_write_in_session_queue
		reads_issued_from_session_queue requests_in_session_queue restore_time snapshottime startup_snap_load_time
		startup_txns_load_time startup_txns_loaded sync_process_time sync_processor_batch_size unavailable_time
		write_batch_time_in_commit_processor write_commit_proc_issued`
	zooKeeperPercentiles = `commit_propagation_latency prep_processor_queue_time_ms propagation_latency proposal_ack_creation_latency
		proposal_latency quorum_ack_latency read_commitproc_time_ms readlatency request_throttle_queue_time_ms
		sync_processor_queue_flush_time_ms updatelatency`

	// Metrics without a meaning in zkgo: always 0. We export them to Prometheus, too,
	// because an alert for a missing name would never fire.
	alwaysZeroGauges   = `non_mtls_local_conn_count non_mtls_remote_conn_count synced_non_voting_followers`
	alwaysZeroCounters = `add_dead_watcher_stall_time dead_watchers_cleared dead_watchers_queued digest_mismatches_count insecure_admin_count
		outstanding_changes_queued outstanding_changes_removed quit_leading_due_to_disloyal_voter request_commit_queued
		requests_not_forwarded_to_commit_processor response_packet_cache_hits response_packet_cache_misses
		response_packet_get_children_cache_hits response_packet_get_children_cache_misses
		skip_learner_request_to_next_processor_count stale_requests sync_processor_request_queued tls_handshake_exceeded
		unrecoverable_error_count`
	alwaysZeroBasic = `commit_commit_proc_req_queued concurrent_request_processing_in_commit_processor inflight_diff_count
		learner_request_processor_queue_size netty_queued_buffer_capacity pending_session_queue_size prep_process_time
		proposal_process_time read_commit_proc_issued read_commit_proc_req_queued session_queues_drained socket_closing_time
		sync_processor_queue_size time_waiting_empty_pool_in_commit_processor_read_ms write_commit_proc_req_queued`
	alwaysZeroPercentiles = `close_session_prep_time dead_watchers_cleaner_latency jvm_pause_time_ms local_write_committed_time_ms
		om_commit_process_time_ms om_proposal_process_time_ms read_final_proc_time_ms server_write_committed_time_ms
		sync_processor_queue_and_flush_time_ms sync_processor_queue_time_ms write_commitproc_time_ms write_final_proc_time_ms`
)

// Complete adds the metrics that ZooKeeper has and this server doesn't count.
func (m *Lines) Complete(sums []status.Summary) {
	have := make(map[string]bool, len(*m))
	for _, v := range *m {
		have[v.Name] = true
	}
	for name := range strings.FieldsSeq(zooKeeperCounters + " " + alwaysZeroCounters) {
		if !have[name] {
			m.Count(name, 0)
		}
	}
	for i := range sums {
		m.summary(&sums[i])
	}
}

// Completed returns sums, and empty summaries of the distributions that ZooKeeper has
// and this server doesn't observe.
func Completed(sums []status.Summary) []status.Summary {
	have := make(map[string]bool, len(sums))
	for i := range sums {
		have[sums[i].Name] = true
	}
	sums = append(sums, unobserved(have, zooKeeperBasic, zooKeeperPercentiles)...)
	return append(sums, unobserved(have, alwaysZeroBasic, alwaysZeroPercentiles)...)
}

// unobserved returns empty summaries for the names that are not in have.
func unobserved(have map[string]bool, basic, percentiles string) (sums []status.Summary) {
	for i, names := range []string{basic, percentiles} {
		for name := range strings.FieldsSeq(names) {
			if !have[name] {
				sums = append(sums, status.Summary{Name: name, Basic: i == 0})
			}
		}
	}
	return sums
}

// AlwaysZero reports whether a metric has no meaning in zkgo.
func AlwaysZero(name string) bool {
	for _, names := range []string{alwaysZeroGauges, alwaysZeroCounters, alwaysZeroBasic, alwaysZeroPercentiles} {
		if slices.Contains(strings.Fields(names), name) {
			return true
		}
	}
	return false
}
