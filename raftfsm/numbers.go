package raftfsm

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/histogram"
	"github.com/zkgo/zkgo/raftfsm/internal/ensemble"
	"github.com/zkgo/zkgo/raftfsm/internal/replica"
)

// Distribution summarises a quantity: the observations since the start or the last reset,
// and the quantiles of the last minutes. Durations are in nanoseconds.
type Distribution struct {
	Count, Sum, Min, Max     int64
	Mean                     float64
	P50, P90, P95, P99, P999 int64
}

// Numbers are the counters and measurements of a Node.
type Numbers struct {
	Log struct {
		Fsync   Distribution // writes of the log or the vote that end in an fsync
		Append  Distribution // appending entries, from Raft's call to its return
		Entries Distribution // commands in a log entry, observed when it is applied
		Bytes   int64        // of appended entries
	}
	Proposing struct {
		Queued     int64        // commands of this server's clients that were passed to the leader or the log
		Waiting    Distribution // commands queued each time a run was sent
		QueueTime  Distribution // how long they were queued
		QuorumAck  Distribution // on the leader, from handing an entry to Raft until it is committed
		Received   int64        // entries that this server got from its leader
		Committed  int64        // entries of other leaders that were applied here
		ToFollower Distribution // on a follower: from the leader's creation of an entry until it arrives,
		ToDisk     Distribution // until it is on disk here,
		ToCommit   Distribution // and until it is about to be applied here
		ToApply    Distribution // until it is applied on any server, by the clocks of the leader and that server
	}
	State struct {
		Apply    Distribution // applying an entry
		Expired  int64        // sessions that ended by their timeout, counted by the leader
		Snapshot Distribution // writing a snapshot
		SnapSize int64        // bytes of the newest snapshot written
	}
	Start struct {
		Init     Distribution // opening the stores, loading the snapshot and the log
		SnapLoad Distribution // the snapshot's part of Init
		TxnsLoad Distribution // applying the log entries after the snapshot, until the server served clients
		TxnsHeld Distribution // number of commands in those entries
	}
	Others struct {
		Acks      map[uint64]Distribution // on the leader: from sending entries to a follower until it has them on disk, by server id
		SnapsSent Distribution            // on the leader: snapshots in flight each time another one starts, including it
		Diffs     int64                   // on the leader: followers that continued with its log; each counts once per leadership
	}
}

// Numbers returns the current counters and measurements.
func (n *Node) Numbers() Numbers { return n.numbers.values(time.Now()) }

// ResetNumbers clears the Numbers. It may lose events that are counted at the same time.
func (n *Node) ResetNumbers() { n.numbers.reset() }

// values returns the values of the counters.
func (c *numbers) values(now time.Time) (n Numbers) {
	of := func(s *histogram.Summary) Distribution { return Distribution(s.Values(now)) }
	n.Log.Fsync, n.Log.Append, n.Log.Entries, n.Log.Bytes = of(&c.Fsync), of(&c.Append), of(&c.Entries), c.Bytes.Load()
	p := &n.Proposing
	p.Queued, p.Received, p.Committed = c.Queued.Load(), c.Received.Load(), c.Committed.Load()
	p.Waiting, p.QueueTime, p.QuorumAck = of(&c.Waiting), of(&c.QueueTime), of(&c.QuorumAck)
	p.ToFollower, p.ToDisk, p.ToCommit, p.ToApply = of(&c.ToFollower), of(&c.ToDisk), of(&c.ToCommit), of(&c.ToApply)
	n.State.Apply, n.State.Snapshot = of(&c.Apply), of(&c.Snapshot)
	n.State.Expired, n.State.SnapSize = c.Expired.Load(), c.SnapSize.Load()
	n.Start.Init, n.Start.SnapLoad, n.Start.TxnsLoad, n.Start.TxnsHeld = of(&c.Init), of(&c.SnapLoad), of(&c.TxnsLoad), of(&c.TxnsHeld)
	n.Others.SnapsSent, n.Others.Diffs, n.Others.Acks = of(&c.peers.SnapsSent), c.peers.Diffs.Load(), make(map[uint64]Distribution)
	for id, s := range c.peers.Acks.All() {
		n.Others.Acks[id] = of(s)
	}
	return n
}

// numbers are the live counters, which can be read at any time; see Numbers.
type numbers struct {
	*replica.Counters
	peers ensemble.Counters // of the ensemble

	Queued    atomic.Int64
	Waiting   histogram.Summary
	QueueTime histogram.Summary
}

// reset clears the counters. It may lose events that are counted at the same time.
func (c *numbers) reset() {
	for _, s := range []*histogram.Summary{&c.Fsync, &c.Append, &c.Entries, &c.Waiting, &c.QueueTime, &c.QuorumAck,
		&c.ToFollower, &c.ToDisk, &c.ToCommit, &c.ToApply, &c.Apply, &c.Snapshot,
		&c.Init, &c.SnapLoad, &c.TxnsLoad, &c.TxnsHeld, &c.peers.SnapsSent} {
		s.Reset()
	}
	for _, v := range []*atomic.Int64{&c.Bytes, &c.Queued, &c.Received, &c.Committed, &c.Expired, &c.peers.Diffs} {
		v.Store(0)
	}
	for _, s := range c.peers.Acks.All() {
		s.Reset()
	}
}

// taken counts a run that leaves the queue. It is as old as its first command.
func (c *numbers) taken(commands, waiting int, since time.Time) {
	c.Queued.Add(int64(commands))
	c.Waiting.Observe(1, int64(waiting))
	c.QueueTime.Observe(int64(commands), int64(time.Since(since)))
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
	r := n.replica.Raft()
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
