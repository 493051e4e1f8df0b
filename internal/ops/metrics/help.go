package metrics

import (
	"slices"
	"strings"
)

// Help returns the description of a metric, or its name if the metric is unknown.
func Help(name string) string {
	for _, table := range []func() map[string]string{gauges, counters, times, sizes} {
		if text, ok := table()[name]; ok {
			return text
		}
	}
	for _, these := range constants() {
		if slices.Contains(strings.Fields(these.names), name) {
			return "Always 0: " + these.why + "."
		}
	}
	return name
}

// gauges go up and down.
func gauges() map[string]string {
	return map[string]string{
		"memory_ceiling_bytes":             "Memory ceiling (memoryCeiling) in bytes.",
		"memory_watch_bytes":               "Approximate memory of all watches in bytes.",
		"memory_used_bytes":                "Memory use in bytes, as compared with the ceiling.",
		"memory_full":                      "1 while the server rejects writes because memory is nearly used up.",
		"ephemerals_count":                 "Ephemeral znodes in the tree.",
		"num_alive_connections":            "Client connections to this server.",
		"avg_latency":                      "Average request latency in milliseconds since the start or srst.",
		"min_latency":                      "Minimum request latency in milliseconds.",
		"max_latency":                      "Maximum request latency in milliseconds.",
		"outstanding_requests":             "Requests of this server's clients that wait for the log.",
		"znode_count":                      "Znodes in the tree.",
		"global_sessions":                  "Sessions of the ensemble.",
		"local_sessions":                   "Local sessions, which this server creates in read-only mode.",
		"last_client_response_size":        "Size of the last reply in bytes, -1 before the first reply.",
		"min_client_response_size":         "Size of the smallest reply in bytes, -1 before the first reply.",
		"max_client_response_size":         "Size of the largest reply in bytes, -1 before the first reply.",
		"packets_sent":                     "Replies and events sent to clients.",
		"packets_received":                 "Requests read from clients.",
		"watch_count":                      "Watches set on this server.",
		"auth_failed_count":                "Failed authentications.",
		"max_file_descriptor_count":        "Limit of open file descriptors.",
		"open_file_descriptor_count":       "Open file descriptors.",
		"approximate_data_size":            "Size of all paths and data in bytes.",
		"uptime":                           "Milliseconds since the server started.",
		"outstanding_tls_handshake":        "Connections with a TLS handshake in progress.",
		"learners":                         "Servers that follow this leader.",
		"synced_followers":                 "Voters that follow this leader and keep up.",
		"synced_observers":                 "Observers that follow this leader, or the observerMasterPort of this server, and keep up.",
		"observer_master_lag_transactions": "Transactions not yet sent to an observer at the observerMasterPort, by observer.",
		"observer_master_lag_milliseconds": "Milliseconds since an observer at the observerMasterPort was last known to be up to date, by observer.",
		"pending_syncs":                    "Pending syncs of this leader's clients.",
		"quorum_size":                      "Voters of the ensemble.",
		"leader_uptime":                    "Milliseconds since this server became the leader.",
		"config_file_differs":              "1 if the members in the configuration file differ from the ensemble's members.",
		"behaviour_level":                  "Behaviour level that the ensemble uses.",
		"mirror_phase":                     "Phase of a mirror of another ensemble: 1 following, 2 taken over, 3 given back, 4 finalized.",
		"mirror_broken":                    "1 if the mirror has stopped because its state differs from the ensemble's.",
		"mirror_in_sync":                   "1 if the leader is connected to the leader of the mirrored ensemble.",
		"mirror_lag_transactions":          "Transactions of the mirrored ensemble that this server has not applied yet.",
		"mirror_lag_milliseconds":          "Time since the last message from the mirrored ensemble's leader.",
		"mirror_digests_compared":          "Matching digests of the mirrored ensemble since the start.",
		"behaviour_level_known":            "Highest behaviour level that this server supports.",
		"quota_count_limit_per_namespace":  "Quota in znodes, by child of the root.",
		"quota_bytes_limit_per_namespace":  "Quota in bytes, by child of the root.",
		"quota_count_usage_per_namespace":  "Znodes that count against the quotas, by child of the root.",
		"quota_bytes_usage_per_namespace":  "Bytes that count against the quotas, by child of the root.",
		"connection_drop_probability":      "Probability that a request for a session is rejected now.",
		"last_proposal_size":               "Size of the leader's last log entry in bytes, -1 before the first entry.",
		"min_proposal_size":                "Size of the leader's smallest log entry in bytes, -1 before the first entry.",
		"max_proposal_size":                "Size of the leader's largest log entry in bytes, -1 before the first entry.",
		"raft_term":                        "Raft's term.",
		"raft_last_log_index":              "Index of the newest entry in this server's log.",
		"raft_commit_index":                "Index up to which this server knows the log to be committed.",
		"raft_applied_index":               "Index up to which this server has applied the log.",
		"raft_snapshot_index":              "Index of the newest snapshot on this server.",
		"raft_snapshot_bytes":              "Size of the last snapshot that this server wrote since its start, in bytes.",
		"raft_servers":                     "Servers in Raft's configuration.",
		"raft_voters":                      "Voters in Raft's configuration.",
		"raft_messages_refused":            "Raft messages rejected because a correct server would not send them.",
		"raft_contact_ms":                  "Milliseconds since this server last heard from a leader with a quorum.",
	}
}

// counters only go up, until a restart or srst.
func counters() map[string]string {
	return map[string]string{
		"connection_rejected":                   "Connections rejected because of maxCnxns or maxClientCnxns.",
		"sessionless_connections_expired":       "Connections closed because the client was silent.",
		"connection_drop_count":                 "Connections closed because the client did not read its replies.",
		"connection_revalidate_count":           "Connections that resumed a session.",
		"connection_request_count":              "Requests to create or resume a session.",
		"unsuccessful_handshake":                "Failed TLS handshakes.",
		"commit_count":                          "Transactions applied.",
		"bytes_received_count":                  "Bytes of requests.",
		"response_bytes":                        "Bytes of replies.",
		"watch_bytes":                           "Bytes of notifications.",
		"large_requests_rejected":               "Requests rejected because large requests exceeded largeRequestMaxBytes.",
		"request_throttle_wait_count":           "Requests that waited because of request throttling.",
		"stale_requests_dropped":                "Throttled requests dropped because their connection was closed.",
		"throttled_ops":                         "Requests that failed with ThrottledOp.",
		"memory_watches_refused":                "Watches rejected because the watches of their connection use too much memory.",
		"memory_writes_refused":                 "Writes rejected because memory is nearly used up.",
		"quota_exceeded_error_per_namespace":    "Writes rejected because of a quota, by child of the root.",
		"snapshot_error_count":                  "Failed snapshot requests over HTTP.",
		"snapshot_rate_limited_count":           "Snapshot requests over HTTP rejected by the rate limit.",
		"restore_error_count":                   "Failed restore requests over HTTP.",
		"restore_rate_limited_count":            "Restore requests over HTTP rejected by the rate limit.",
		"stale_replies":                         "Replies dropped because their connection was closed.",
		"cnxn_closed_without_zk_server_running": "Clients rejected while the server did not serve clients.",
		"clients_refused_later_zxid":            "Clients rejected because they had seen a later state than this server has.",
		"clients_refused_session":               "Clients rejected because their session had ended or the session password was wrong.",
		"clients_refused_unauthenticated":       "Requests rejected because the client had not authenticated (enforce.auth).",
		"clients_refused_malformed":             "Connections closed because of a malformed request or one longer than jute.maxbuffer.",
		"clients_refused_read_only":             "Sessions rejected in read-only mode because localSessionsEnabled is not set.",
		"ensemble_auth_fail":                    "Clients that requested an ensemble with another name.",
		"ensemble_auth_skip":                    "Clients of the ensemble scheme without a name to check on either side.",
		"ensemble_auth_success":                 "Clients that requested this ensemble by name.",
		"stale_sessions_expired":                "Sessions that this server, as the leader, has expired.",
		"prep_processor_request_queued":         "Writes of this server's clients.",
		"proposal_count":                        "Writes that this server proposed as the leader, for clients of all servers.",
		"raft_log_bytes":                        "Bytes of entries appended to the log.",
		"looking_count":                         "Number of times that this server started to look for a leader.",
		"revalidate_count":                      "Sessions resumed at this server while it was a follower.",
		"learner_proposal_received_count":       "Log entries received from the leader.",
		"learner_commit_received_count":         "Log entries of another server's leadership that were applied.",
		"diff_count":                            "Followers that caught up from this leader's log.",
		"snap_count":                            "Snapshots that this leader sent to followers.",
	}
}

// times are distributions in milliseconds.
func times() map[string]string {
	return map[string]string{
		"updatelatency":                        "Latency of writes in milliseconds, from reading the request to the reply.",
		"restore_time":                         "Duration of restores over HTTP in milliseconds.",
		"readlatency":                          "Latency of reads in milliseconds, from reading the request to the reply.",
		"read_commitproc_time_ms":              "Milliseconds that reads waited for an earlier write of their session.",
		"unavailable_time":                     "Duration of each time without service in milliseconds, on every server.",
		"leader_unavailable_time":              "Duration of each time without service in milliseconds, on the new leader.",
		"election_time":                        "Milliseconds from starting to look for a leader to finding one.",
		"follower_sync_time":                   "Milliseconds from finding the leader to serving clients, as a follower.",
		"observer_sync_time":                   "Milliseconds from finding the leader to serving clients, as an observer.",
		"prep_processor_queue_time_ms":         "Milliseconds that the oldest write of each batch waited to be proposed.",
		"sync_process_time":                    "Milliseconds to append entries to the log, including fsync.",
		"sync_processor_queue_flush_time_ms":   "Milliseconds of a log write with fsync.",
		"fsynctime":                            "Milliseconds of a log write with fsync.",
		"quorum_ack_latency":                   "Milliseconds from a proposal until a quorum has stored it.",
		"propagation_latency":                  "Milliseconds from the leader's proposal until this server has applied it (compares the clocks of two servers).",
		"commit_process_time":                  "Milliseconds to apply a log entry.",
		"write_batch_time_in_commit_processor": "Milliseconds to apply a log entry.",
		"proposal_latency":                     "Milliseconds from the leader's proposal until this server received the entry (compares the clocks of two servers).",
		"proposal_ack_creation_latency":        "Milliseconds from the leader's proposal until this server stored the entry (compares the clocks of two servers).",
		"commit_propagation_latency":           "Milliseconds from the leader's proposal until this server knew that it was committed (compares the clocks of two servers).",
		"ack_latency":                          "Milliseconds from sending entries to a follower until it has stored them, by server id.",
		"snapshottime":                         "Milliseconds to write a snapshot.",
		"request_throttle_queue_time_ms":       "Milliseconds that requests waited because of request throttling.",
		"dbinittime":                           "Milliseconds to load the snapshot and the log at the start.",
		"startup_snap_load_time":               "Milliseconds to load the snapshot at the start.",
		"startup_txns_load_time":               "Milliseconds to apply the log at the start.",
	}
}

// sizes are distributions of numbers.
func sizes() map[string]string {
	return map[string]string{
		"node_created_watch_count":           "Watchers notified per creation.",
		"node_deleted_watch_count":           "Watchers notified per deletion.",
		"node_changed_watch_count":           "Watchers notified per data change.",
		"node_children_watch_count":          "Watchers notified per change of children.",
		"requests_in_session_queue":          "Queued requests of a session when one was answered.",
		"reads_after_write_in_session_queue": "Reads answered together with the write that they waited for.",
		"reads_issued_from_session_queue":    "Reads answered together with the write that they waited for.",
		"prep_processor_queue_size":          "Queued writes when a batch was proposed.",
		"sync_processor_batch_size":          "Writes per log entry.",
		"write_commit_proc_issued":           "Writes per log entry.",
		"inflight_snap_count":                "Snapshots in transfer when another transfer began.",
		"read_per_namespace":                 "Bytes of a read (path and content), by child of the root.",
		"write_per_namespace":                "Bytes of a write, by child of the root.",
		"connection_token_deficit":           "Missing connection tokens when a session was created.",
		"startup_txns_loaded":                "Writes applied from the log at the start.",
	}
}

// constants are ZooKeeper's metrics without a meaning in zkgo, and the reasons.
func constants() []struct{ why, names string } {
	return []struct{ why, names string }{
		{"zkgo has no commit processor", `commit_commit_proc_req_queued concurrent_request_processing_in_commit_processor
			local_write_committed_time_ms pending_session_queue_size read_commit_proc_issued read_commit_proc_req_queued
			request_commit_queued requests_not_forwarded_to_commit_processor server_write_committed_time_ms session_queues_drained
			time_waiting_empty_pool_in_commit_processor_read_ms write_commit_proc_req_queued write_commitproc_time_ms`},
		{"zkgo has no final processor", "read_final_proc_time_ms write_final_proc_time_ms"},
		{"zkgo checks a write when it applies it", `close_session_prep_time outstanding_changes_queued outstanding_changes_removed
			prep_process_time proposal_process_time`},
		{"at most two entries are written at a time, and other writes wait in prep_processor_queue_size", `sync_processor_queue_and_flush_time_ms
			sync_processor_queue_size sync_processor_queue_time_ms sync_processor_request_queued`},
		{"zkgo removes the watches of a connection immediately", `add_dead_watcher_stall_time dead_watchers_cleaner_latency
			dead_watchers_cleared dead_watchers_queued`},
		{"zkgo has no cache of replies", `response_packet_cache_hits response_packet_cache_misses
			response_packet_get_children_cache_hits response_packet_get_children_cache_misses`},
		{"servers don't queue packets for each other", "learner_request_processor_queue_size skip_learner_request_to_next_processor_count"},
		{"followers that catch up get the log like the others", "inflight_diff_count"},
		{"zkgo has no observer masters", "om_commit_process_time_ms om_proposal_process_time_ms"},
		{"zkgo drops requests with their connection", "stale_requests"},
		{"a server stops at its first such error", "digest_mismatches_count unrecoverable_error_count"},
		{"zkgo has no such limit", "insecure_admin_count tls_handshake_exceeded"},
		{"zkgo doesn't run in a JVM", "jvm_pause_time_ms netty_queued_buffer_capacity"},
		{"closing a socket doesn't wait", "socket_closing_time"},
		{"Raft elects no leader that a voter may leave", "quit_leading_due_to_disloyal_voter"},
		{"zkgo doesn't count these apart", "non_mtls_local_conn_count non_mtls_remote_conn_count"},
		{"zkgo has no followers without a vote", "synced_non_voting_followers"},
	}
}
