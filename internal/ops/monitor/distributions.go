package monitor

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/internal/histogram"
	"github.com/zkgo/zkgo/internal/ops/mntr"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/internal/ops/status"
	"github.com/zkgo/zkgo/raftfsm"
)

const millisecond = int64(time.Millisecond)

// distribution is a measured quantity under one of ZooKeeper's names. Two names may
// show the same quantity.
type distribution struct {
	name  string
	of    histogram.Values
	unit  int64 // of the values shown, in units of the values observed
	basic bool  // mntr shows no percentiles
}

// distributions lists the distributions that this server can have observed.
func (v View) distributions(n *raftfsm.Numbers, now time.Time) []distribution {
	st := v.Stats
	list := []distribution{
		{"node_created_watch_count", st.Watchers[0].Values(now), 1, true},
		{"node_deleted_watch_count", st.Watchers[1].Values(now), 1, true},
		{"node_changed_watch_count", st.Watchers[2].Values(now), 1, true},
		{"node_children_watch_count", st.Watchers[3].Values(now), 1, true},
		{"updatelatency", st.Updates.Values(now), millisecond, false},
		{"readlatency", st.Reads.Values(now), millisecond, false},
		{"unavailable_time", st.Unavailable.Values(now), millisecond, true},

		{"read_commitproc_time_ms", st.Waited.Values(now), millisecond, false},
		{"requests_in_session_queue", st.Queued.Values(now), 1, true},
		{"reads_after_write_in_session_queue", st.ReadsAfterWrite.Values(now), 1, true},
		{"reads_issued_from_session_queue", st.ReadsAfterWrite.Values(now), 1, true},

		{"prep_processor_queue_size", histogram.Values(n.Proposing.Waiting), 1, true},
		{"prep_processor_queue_time_ms", histogram.Values(n.Proposing.QueueTime), millisecond, false},
		{"sync_processor_batch_size", histogram.Values(n.Log.Entries), 1, true},
		{"sync_process_time", histogram.Values(n.Log.Append), millisecond, true},
		{"sync_processor_queue_flush_time_ms", histogram.Values(n.Log.Fsync), millisecond, false},
		{"fsynctime", histogram.Values(n.Log.Fsync), millisecond, true},
		{"quorum_ack_latency", histogram.Values(n.Proposing.QuorumAck), millisecond, false},
		{"propagation_latency", histogram.Values(n.Proposing.ToApply), millisecond, false},
		{"commit_process_time", histogram.Values(n.State.Apply), millisecond, true},
		{"write_batch_time_in_commit_processor", histogram.Values(n.State.Apply), millisecond, true},
		{"write_commit_proc_issued", histogram.Values(n.Log.Entries), 1, true},

		{"dbinittime", histogram.Values(n.Start.Init), millisecond, true},
		{"startup_txns_load_time", histogram.Values(n.Start.TxnsLoad), millisecond, true},
		{"startup_txns_loaded", histogram.Values(n.Start.TxnsHeld), 1, true},
	}
	if v.Admin {
		list = append(list, distribution{"restore_time", st.Restores.Values(now), millisecond, true})
	}
	if v.Throttles {
		list = append(list, distribution{"request_throttle_queue_time_ms", st.ThrottleQueue.Values(now), millisecond, false})
	}
	if v.Tokens != nil {
		list = append(list, distribution{"connection_token_deficit", st.TokenDeficit.Values(now), 1, true})
	}
	if !v.InMemory || v.Distributed {
		list = append(list, distribution{"snapshottime", histogram.Values(n.State.Snapshot), millisecond, true})
	}
	if !v.InMemory {
		list = append(list, distribution{"startup_snap_load_time", histogram.Values(n.Start.SnapLoad), millisecond, true})
	}
	if v.Distributed {
		list = append(list,
			distribution{"election_time", st.Elections.Values(now), millisecond, true},
			distribution{"leader_unavailable_time", st.Leaderless.Values(now), millisecond, true},
			distribution{"follower_sync_time", st.SyncTimes.Values(now), millisecond, true},
			distribution{"observer_sync_time", st.ObsSyncs.Values(now), millisecond, true},
			distribution{"proposal_latency", histogram.Values(n.Proposing.ToFollower), millisecond, false},
			distribution{"proposal_ack_creation_latency", histogram.Values(n.Proposing.ToDisk), millisecond, false},
			distribution{"commit_propagation_latency", histogram.Values(n.Proposing.ToCommit), millisecond, false},
			distribution{"inflight_snap_count", histogram.Values(n.Others.SnapsSent), 1, true},
		)
	}
	return list
}

// Summaries implements metrics.Source.
func (v View) Summaries() []status.Summary {
	n := v.Node.Numbers()
	return v.summaries(&n)
}

func (v View) summaries(n *raftfsm.Numbers) []status.Summary {
	now := time.Now()
	var sums []status.Summary
	for _, d := range v.distributions(n, now) {
		sums = append(sums, d.summary())
	}
	sums = append(sums, v.namespaces(now)...)
	for _, id := range slices.Sorted(maps.Keys(n.Others.Acks)) {
		s := distribution{"ack_latency", histogram.Values(n.Others.Acks[id]), millisecond, false}.summary()
		s.Key = strconv.FormatUint(id, 10)
		sums = append(sums, s)
	}
	return mntr.Completed(sums)
}

// namespaces returns the summaries of accesses by child of the root.
func (v View) namespaces(now time.Time) (sums []status.Summary) {
	v.Namespaces.Each(func(n *stats.Namespace) {
		for _, d := range []distribution{{"read_per_namespace", n.Reads.Values(now), 1, true}, {"write_per_namespace", n.Writes.Values(now), 1, true}} {
			if s := d.summary(); s.Count > 0 {
				s.Key = n.Name
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
func (v View) perNamespace(m *mntr.Lines) {
	type use struct{ countLimit, bytesLimit, count, bytes, refused int64 }
	all := map[string]*use{}
	of := func(name string) *use {
		if all[name] == nil {
			if len(all) >= stats.MaxNamespaces || len(name) > stats.MaxNamespaceName {
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
	t := v.Node.Tree()
	t.RLock()
	paths := t.QuotaPaths()
	t.RUnlock()
	slices.Sort(paths)
	for some := range slices.Chunk(paths, quotasAtOnce) {
		t.RLock()
		for _, path := range some {
			name := stats.NamespaceOf(path)
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
	v.Namespaces.Each(func(n *stats.Namespace) {
		if refused := n.OverQuota.Load(); refused > 0 {
			of(n.Name).refused = refused
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

// summary returns the distribution in the unit shown.
func (d distribution) summary() status.Summary {
	p := d.of
	in := func(n int64) float64 { return float64(n) / float64(d.unit) }
	return status.Summary{
		Name: d.name, Basic: d.basic, Count: p.Count, Sum: in(p.Sum), Min: in(p.Min), Max: in(p.Max), Mean: p.Mean / float64(d.unit),
		P50: in(p.P50), P90: in(p.P90), P95: in(p.P95), P99: in(p.P99), P999: in(p.P999),
	}
}
