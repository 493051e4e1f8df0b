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
		"memory_ceiling_bytes":             "memoryCeiling, in bytes.",
		"memory_watch_bytes":               "Memory that the watches of all connections take, about.",
		"memory_used_bytes":                "Memory that is compared with the ceiling.",
		"memory_full":                      "1 while writes that need memory are refused.",
		"ephemerals_count":                 "Ephemeral znodes in the tree.",
		"num_alive_connections":            "Connections of clients to this server.",
		"avg_latency":                      "Milliseconds that a request took on the average, since the start or srst.",
		"min_latency":                      "Milliseconds that the fastest request took.",
		"max_latency":                      "Milliseconds that the slowest request took.",
		"outstanding_requests":             "Requests of this server's clients that are in the log's hands.",
		"znode_count":                      "Znodes in the tree.",
		"global_sessions":                  "Sessions of the ensemble.",
		"local_sessions":                   "Sessions of this server alone, as it gives out in read-only mode.",
		"last_client_response_size":        "Bytes of the latest reply, -1 before the first.",
		"min_client_response_size":         "Bytes of the smallest reply, -1 before the first.",
		"max_client_response_size":         "Bytes of the largest reply, -1 before the first.",
		"packets_sent":                     "Replies and events sent to clients.",
		"packets_received":                 "Requests read from clients.",
		"watch_count":                      "Watches set on this server.",
		"auth_failed_count":                "Authentications that were refused.",
		"max_file_descriptor_count":        "File descriptors that the process may have.",
		"open_file_descriptor_count":       "File descriptors that the process has.",
		"approximate_data_size":            "Bytes of all paths and data in the tree.",
		"uptime":                           "Milliseconds since the server was started.",
		"outstanding_tls_handshake":        "Connections amid a TLS handshake.",
		"learners":                         "Servers that follow this leader.",
		"synced_followers":                 "Voters that follow this leader and keep up.",
		"synced_observers":                 "Observers that follow this leader, or the observerMasterPort of this server, and keep up.",
		"observer_master_lag_transactions": "Transactions that were not sent yet to an observer at the observerMasterPort.",
		"observer_master_lag_milliseconds": "Time since an observer at the observerMasterPort is known to have had everything.",
		"pending_syncs":                    "Syncs of this leader's clients that are under way.",
		"quorum_size":                      "Voters of the ensemble.",
		"leader_uptime":                    "Milliseconds since this server leads.",
		"config_file_differs":              "1 if the configuration file lists another membership than the ensemble has.",
		"behaviour_level":                  "Level of behaviour that the ensemble has agreed on.",
		"mirror_phase":                     "Phase of a mirror of another ensemble: 1 following, 2 taken over, 3 given back, 4 finalized.",
		"mirror_broken":                    "Whether the mirror has stopped, because its state is no longer the ensemble's.",
		"mirror_in_sync":                   "Whether the leader of these servers is connected to the mirrored ensemble's.",
		"mirror_lag_transactions":          "Transactions of the mirrored ensemble that are announced and not applied here.",
		"mirror_lag_milliseconds":          "Time since the mirrored ensemble's leader was heard.",
		"mirror_digests_compared":          "Digests of the mirrored ensemble that have matched since the start.",
		"behaviour_level_known":            "Level of behaviour that this server knows; higher than the other amid an upgrade.",
		"quota_count_limit_per_namespace":  "Znodes that the quotas below a child of the root allow.",
		"quota_bytes_limit_per_namespace":  "Bytes that the quotas below a child of the root allow.",
		"quota_count_usage_per_namespace":  "Znodes that count against those quotas.",
		"quota_bytes_usage_per_namespace":  "Bytes that count against those quotas.",
		"connection_drop_probability":      "How likely a client is turned away that asks for a session now.",
		"last_proposal_size":               "Bytes of this leader's latest log entry, -1 before the first.",
		"min_proposal_size":                "Bytes of this leader's smallest log entry, -1 before the first.",
		"max_proposal_size":                "Bytes of this leader's largest log entry, -1 before the first.",
		"raft_term":                        "Raft's term.",
		"raft_last_log_index":              "Index of the newest entry in this server's log.",
		"raft_commit_index":                "Index up to which this server knows the log to be committed.",
		"raft_applied_index":               "Index up to which this server has applied the log.",
		"raft_snapshot_index":              "Index of the newest snapshot on this server.",
		"raft_snapshot_bytes":              "Bytes of the newest snapshot that this server wrote since its start.",
		"raft_servers":                     "Servers in Raft's configuration.",
		"raft_voters":                      "Voters in Raft's configuration.",
		"raft_messages_refused":            "Messages of Raft that were refused because no correct server sends them.",
		"raft_contact_ms":                  "Milliseconds since a leader with a quorum confirmed this server.",
	}
}

// counters only go up, until a restart or srst.
func counters() map[string]string {
	return map[string]string{
		"connection_rejected":                   "Connections refused for their number, in all or from one address.",
		"sessionless_connections_expired":       "Connections closed because nothing was heard from them.",
		"connection_drop_count":                 "Connections closed because their client did not read.",
		"connection_revalidate_count":           "Connections that came with a session that they had.",
		"connection_request_count":              "Requests for a session, new or known.",
		"unsuccessful_handshake":                "TLS handshakes that failed.",
		"commit_count":                          "Transactions applied.",
		"bytes_received_count":                  "Bytes of requests.",
		"response_bytes":                        "Bytes of replies.",
		"watch_bytes":                           "Bytes of notifications.",
		"large_requests_rejected":               "Requests refused because large requests had largeRequestMaxBytes already.",
		"request_throttle_wait_count":           "Requests that waited for others to be done.",
		"stale_requests_dropped":                "Waiting requests dropped with their connections.",
		"throttled_ops":                         "Requests answered with ThrottledOp.",
		"memory_watches_refused":                "Watches refused because those of their connection take too much memory.",
		"memory_writes_refused":                 "Writes refused because memory is nearly used up.",
		"quota_exceeded_error_per_namespace":    "Writes refused for a quota, by child of the root.",
		"snapshot_error_count":                  "Snapshots over HTTP that failed.",
		"snapshot_rate_limited_count":           "Requests for a snapshot over HTTP that came too early.",
		"restore_error_count":                   "Requests over HTTP to restore a state that were refused.",
		"restore_rate_limited_count":            "Requests over HTTP to restore a state that came too early.",
		"stale_replies":                         "Replies that came when their connection had gone.",
		"cnxn_closed_without_zk_server_running": "Clients turned away while nobody could be served.",
		"clients_refused_later_zxid":            "Clients turned away because they had seen a later state than this server has.",
		"clients_refused_session":               "Clients whose session had ended, or that gave a wrong password for it.",
		"clients_refused_unauthenticated":       "Requests of clients that have to authenticate before anything else.",
		"clients_refused_malformed":             "Clients closed for what is not the protocol, or longer than jute.maxbuffer.",
		"clients_refused_read_only":             "Sessions that could not begin in read-only mode, for want of localSessionsEnabled.",
		"ensemble_auth_fail":                    "Clients that wanted an ensemble of another name.",
		"ensemble_auth_skip":                    "Clients of the scheme ensemble that wanted none in particular, or any of a server without a name.",
		"ensemble_auth_success":                 "Clients that wanted this ensemble by its name.",
		"stale_sessions_expired":                "Sessions that this server, as the leader, has expired.",
		"prep_processor_request_queued":         "Writes of this server's clients that went to the log.",
		"proposal_count":                        "Writes that this server has proposed as the leader, of all servers' clients.",
		"raft_log_bytes":                        "Bytes of entries appended to the log.",
		"looking_count":                         "Times that this server began to look for a leader.",
		"revalidate_count":                      "Sessions that came back to this server while it followed.",
		"learner_proposal_received_count":       "Log entries that came from the leader.",
		"learner_commit_received_count":         "Log entries of a leader elsewhere that were applied.",
		"diff_count":                            "Followers that went on from the log of this leader.",
		"snap_count":                            "Snapshots that this leader has sent to followers.",
	}
}

// times are distributions in milliseconds.
func times() map[string]string {
	return map[string]string{
		"updatelatency":                        "Milliseconds from reading a write until its answer.",
		"restore_time":                         "Milliseconds that restores over HTTP took.",
		"readlatency":                          "Milliseconds from reading a read until its answer.",
		"read_commitproc_time_ms":              "Milliseconds that reads waited for a write of their session; others do not wait.",
		"unavailable_time":                     "Milliseconds without service, counted when there is service again.",
		"leader_unavailable_time":              "Milliseconds without service, counted by the server that leads then.",
		"election_time":                        "Milliseconds from looking for a leader until one was known.",
		"follower_sync_time":                   "Milliseconds from knowing the leader until serving, as a follower.",
		"observer_sync_time":                   "Milliseconds from knowing the leader until serving, as an observer.",
		"prep_processor_queue_time_ms":         "Milliseconds that writes waited to be proposed: the oldest of each run.",
		"sync_process_time":                    "Milliseconds to append entries to the log, fsync included.",
		"sync_processor_queue_flush_time_ms":   "Milliseconds of a write of the log that ends in an fsync.",
		"fsynctime":                            "Milliseconds of a write of the log that ends in an fsync.",
		"quorum_ack_latency":                   "Milliseconds from proposing until a quorum has it on disk.",
		"propagation_latency":                  "Milliseconds from the leader's proposing, by its clock, until applied here, by this one's.",
		"commit_process_time":                  "Milliseconds to apply a log entry.",
		"write_batch_time_in_commit_processor": "Milliseconds to apply a log entry.",
		"proposal_latency":                     "Milliseconds from the leader's proposing until an entry came in here, by two clocks.",
		"proposal_ack_creation_latency":        "Milliseconds from the leader's proposing until an entry was on disk here, by two clocks.",
		"commit_propagation_latency":           "Milliseconds from the leader's proposing until an entry was known to be committed here, by two clocks.",
		"ack_latency":                          "Milliseconds from sending entries to a follower until it has them on disk, by its id.",
		"snapshottime":                         "Milliseconds to write a snapshot.",
		"request_throttle_queue_time_ms":       "Milliseconds that requests waited for others to be done.",
		"dbinittime":                           "Milliseconds to load snapshot and log at the start.",
		"startup_snap_load_time":               "Milliseconds to load the snapshot at the start.",
		"startup_txns_load_time":               "Milliseconds to apply the log at the start.",
	}
}

// sizes are distributions of numbers.
func sizes() map[string]string {
	return map[string]string{
		"node_created_watch_count":           "Watchers told of one creation.",
		"node_deleted_watch_count":           "Watchers told of one deletion.",
		"node_changed_watch_count":           "Watchers told of one change of data.",
		"node_children_watch_count":          "Watchers told of one change of children.",
		"requests_in_session_queue":          "Requests of a session that were waiting when one of them was answered.",
		"reads_after_write_in_session_queue": "Reads that were answered with the write they waited for.",
		"reads_issued_from_session_queue":    "Reads that were answered with the write they waited for.",
		"prep_processor_queue_size":          "Writes that were waiting whenever some were taken to be proposed.",
		"sync_processor_batch_size":          "Writes in a log entry.",
		"write_commit_proc_issued":           "Writes in a log entry.",
		"inflight_snap_count":                "Snapshots being sent whenever one more began.",
		"read_per_namespace":                 "Bytes of a read, path and content, by child of the root.",
		"write_per_namespace":                "Bytes of a write, by child of the root.",
		"connection_token_deficit":           "Tokens that were out when a session was begun.",
		"startup_txns_loaded":                "Writes in the log beyond the snapshot at the start.",
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
		{"zkgo removes the watches of a connection at once", `add_dead_watcher_stall_time dead_watchers_cleaner_latency
			dead_watchers_cleared dead_watchers_queued`},
		{"zkgo has no cache of replies", `response_packet_cache_hits response_packet_cache_misses
			response_packet_get_children_cache_hits response_packet_get_children_cache_misses`},
		{"servers don't queue packets for each other", "learner_request_processor_queue_size skip_learner_request_to_next_processor_count"},
		{"followers that catch up get the log as the others do", "inflight_diff_count"},
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
