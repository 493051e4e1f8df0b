package replica

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/histogram"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
)

// Counters are the counters of a Replica. All fields can be read at any time. Durations are
// in nanoseconds.
type Counters struct {
	apply.Counters // of the state machine

	Fsync      histogram.Summary // writes of the log or the vote that end in an fsync
	Append     histogram.Summary // appending entries, from Raft's call to its return
	Bytes      atomic.Int64      // of appended entries
	Received   atomic.Int64      // entries that this server got from its leader
	ToFollower histogram.Summary // on a follower: from the leader's creation of an entry until it arrives,
	ToDisk     histogram.Summary // and until it is on disk here
	Init       histogram.Summary // opening the stores, loading the snapshot and the log
	SnapLoad   histogram.Summary // the snapshot's part of Init
	TxnsLoad   histogram.Summary // applying the log entries after the snapshot, until the server served clients
	TxnsHeld   histogram.Summary // number of commands in those entries
}

// countedLogs is the log store that Raft gets.
type countedLogs struct {
	raft.LogStore
	counters *Counters
	follows  func() bool // whether the entries come from a leader
}

var _ raft.MonotonicLogStore = countedLogs{}

// IsMonotonic implements raft.MonotonicLogStore.
func (c countedLogs) IsMonotonic() bool {
	m, ok := c.LogStore.(raft.MonotonicLogStore)
	return ok && m.IsMonotonic()
}

// StoreLog implements raft.LogStore.
func (c countedLogs) StoreLog(l *raft.Log) error { return c.StoreLogs([]*raft.Log{l}) }

// StoreLogs implements raft.LogStore.
func (c countedLogs) StoreLogs(logs []*raft.Log) error {
	begin := time.Now()
	if err := c.LogStore.StoreLogs(logs); err != nil {
		return err
	}
	end, follows := time.Now(), c.follows()
	c.counters.Append.Observe(1, int64(end.Sub(begin)))
	size := 0
	for _, l := range logs {
		size += len(l.Data)
		if follows {
			apply.ObserveAge(&c.counters.ToFollower, 1, l.AppendedAt, begin)
			apply.ObserveAge(&c.counters.ToDisk, 1, l.AppendedAt, end)
		}
	}
	if follows {
		c.counters.Received.Add(int64(len(logs)))
	}
	c.counters.Bytes.Add(int64(size))
	return nil
}

// CountStart sums up the work done before the server first served clients.
func (r *Replica) CountStart() {
	c := &r.Counters
	now := time.Now()
	load := c.Apply.Snapshot(now).Sum
	c.TxnsLoad.Observe(1, load)
	c.TxnsHeld.Observe(1, c.Entries.Snapshot(now).Sum)
	c.Init.Observe(1, int64(r.opening)+load)
}
