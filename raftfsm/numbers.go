package raftfsm

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/histogram"
	"github.com/zkgo/zkgo/raftfsm/internal/apply"
)

// Numbers are a Node's counters. All fields can be read at any time. Durations are in
// nanoseconds. A zero Summary has no observations.
type Numbers struct {
	apply.Counters // of the state machine

	// The log.
	Fsync  histogram.Summary // writes of the log or the vote that end in an fsync
	Append histogram.Summary // appending entries, from Raft's call to its return
	Bytes  atomic.Int64      // of appended entries

	// Proposing.
	Queued     atomic.Int64      // commands of this server's clients that were passed to the leader or the log
	Waiting    histogram.Summary // how many of them were queued each time a run was taken
	QueueTime  histogram.Summary // how long they were queued
	Received   atomic.Int64      // entries that this server got from its leader
	ToFollower histogram.Summary // on a follower: from the leader's creation of an entry until it arrives,
	ToDisk     histogram.Summary // and until it is on disk here

	// The start.
	Init     histogram.Summary // opening the stores, loading the snapshot and the log
	SnapLoad histogram.Summary // the snapshot's part of Init
	TxnsLoad histogram.Summary // applying the log entries after the snapshot, until the server served clients
	TxnsHeld histogram.Summary // how many commands those entries held

	// Other servers.
	Acks      perServer         // on the leader: from sending entries to a follower until it has them on disk
	SnapsSent histogram.Summary // on the leader: snapshots in flight each time another one starts, including it
	sending   atomic.Int64      // snapshots being sent
	Diffs     atomic.Int64      // on the leader: followers that continued with its log; each counts once per leadership
}

// perServer keeps a Summary for each other server.
type perServer struct {
	mu sync.Mutex
	of map[uint64]*histogram.Summary
}

// observe counts d for a server.
func (p *perServer) observe(id uint64, d time.Duration) {
	p.mu.Lock()
	s := p.of[id]
	if s == nil {
		if p.of == nil {
			p.of = make(map[uint64]*histogram.Summary)
		}
		s = new(histogram.Summary)
		p.of[id] = s
	}
	p.mu.Unlock()
	s.Observe(1, int64(d))
}

// All returns the summaries by server id.
func (p *perServer) All() map[uint64]*histogram.Summary {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.of)
}

// sendingSnapshot counts a snapshot that is being sent to a follower, until the caller
// calls done.
func (c *Numbers) sendingSnapshot() (done func()) {
	c.SnapsSent.Observe(1, c.sending.Add(1))
	return func() { c.sending.Add(-1) }
}

// Numbers returns the live counters.
func (n *Node) Numbers() *Numbers { return &n.numbers }

// Reset clears the counters. It may lose what is counted at the same time.
func (c *Numbers) Reset() {
	for _, s := range []*histogram.Summary{&c.Fsync, &c.Append, &c.Entries, &c.Waiting, &c.QueueTime, &c.QuorumAck,
		&c.ToFollower, &c.ToDisk, &c.ToCommit, &c.ToApply, &c.Apply, &c.Snapshot,
		&c.Init, &c.SnapLoad, &c.TxnsLoad, &c.TxnsHeld, &c.SnapsSent} {
		s.Reset()
	}
	for _, v := range []*atomic.Int64{&c.Bytes, &c.Queued, &c.Received, &c.Committed, &c.Expired, &c.Diffs} {
		v.Store(0)
	}
	for _, s := range c.Acks.All() {
		s.Reset()
	}
}

// countedLogs is the log store that Raft gets.
type countedLogs struct {
	raft.LogStore
	numbers *Numbers
	follows func() bool // whether the entries come from a leader
}

var _ raft.MonotonicLogStore = countedLogs{}

// IsMonotonic returns what the store says.
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
	c.numbers.Append.Observe(1, int64(end.Sub(begin)))
	size := 0
	for _, l := range logs {
		size += len(l.Data)
		if follows {
			apply.ObserveAge(&c.numbers.ToFollower, 1, l.AppendedAt, begin)
			apply.ObserveAge(&c.numbers.ToDisk, 1, l.AppendedAt, end)
		}
	}
	if follows {
		c.numbers.Received.Add(int64(len(logs)))
	}
	c.numbers.Bytes.Add(int64(size))
	return nil
}

// follows reports whether this server's log is a copy of a leader's.
func (n *Node) follows() bool {
	r := n.raftNow()
	return r != nil && r.State() == raft.Follower
}

// taken counts a run that leaves the queue. Its age is that of its first command.
func (c *Numbers) taken(commands, waiting int, since time.Time) {
	c.Queued.Add(int64(commands))
	c.Waiting.Observe(1, int64(waiting))
	c.QueueTime.Observe(int64(commands), int64(time.Since(since)))
}

// countStart sums up the work done before the server first served clients.
func (n *Node) countStart() {
	c := n.Numbers()
	now := time.Now()
	load := c.Apply.Snapshot(now).Sum
	c.TxnsLoad.Observe(1, load)
	c.TxnsHeld.Observe(1, c.Entries.Snapshot(now).Sum)
	c.Init.Observe(1, int64(n.opening)+load)
}

// RaftState is Raft's own state.
type RaftState struct {
	Term                     uint64
	Last, Committed, Applied uint64 // indexes of the log
	SnapshotIndex            uint64
	Behind                   uint64        // entries committed but not applied
	Servers, Voters          int           // in Raft's configuration
	Contact                  time.Duration // since the ensemble last confirmed this server; 0 for a standalone server
}

// RaftState returns the current state; false until Raft runs.
func (n *Node) RaftState() (RaftState, bool) {
	r := n.raftNow()
	if r == nil {
		return RaftState{}, false
	}
	s := RaftState{Term: r.CurrentTerm(), Last: r.LastIndex(), Committed: r.CommitIndex(), Applied: r.AppliedIndex()}
	if s.Committed > s.Applied {
		s.Behind = s.Committed - s.Applied
	}
	s.SnapshotIndex, _ = strconv.ParseUint(r.Stats()["last_snapshot_index"], 10, 64)
	for _, v := range r.GetConfiguration().Configuration().Servers {
		s.Servers++
		if v.Suffrage == raft.Voter {
			s.Voters++
		}
	}
	if !n.cfg.standalone() {
		s.Contact = max(time.Since(n.Confirmed()), 0)
	}
	return s, true
}
