package raftfsm

import (
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/histogram"
)

// Numbers is what a Node counts while it works. All may be read at any time;
// durations are in nanoseconds. A zero Summary has seen nothing.
type Numbers struct {
	// The log.
	Fsync   histogram.Summary // a write of log or vote that ends in an fsync
	Append  histogram.Summary // appending entries, from Raft's call to its return
	Entries histogram.Summary // commands in a log entry, as it is applied
	Bytes   atomic.Int64      // of entries appended

	// Proposing.
	Queued     atomic.Int64      // commands of this server's clients that went on to the leader or the log
	Waiting    histogram.Summary // of those, how many were waiting whenever some were taken
	QueueTime  histogram.Summary // how long they had waited
	QuorumAck  histogram.Summary // on the leader, from handing an entry to Raft until it is committed
	Received   atomic.Int64      // entries that this server got from its leader
	Committed  atomic.Int64      // of other leaders, applied here
	ToFollower histogram.Summary // on a follower: from the making of an entry by the leader until it comes in,
	ToDisk     histogram.Summary // until it is on disk here,
	ToCommit   histogram.Summary // and until it is applied here
	ToApply    histogram.Summary // the same on any server, by the clocks of two of them

	// The state.
	Apply    histogram.Summary // applying an entry
	Expired  atomic.Int64      // sessions that ended by their timeout, counted by the leader
	Snapshot histogram.Summary // writing one
	SnapSize atomic.Int64      // bytes of the newest that was written
	Writing  atomic.Int64      // snapshots that are being written

	// The start.
	Init     histogram.Summary // opening the stores, loading the snapshot and the log
	SnapLoad histogram.Summary // of which the snapshot
	TxnsLoad histogram.Summary // applying what the log held beyond it, until clients were served
	TxnsHeld histogram.Summary // how many commands that was

	// Other servers.
	Acks      PerServer         // on the leader: from sending entries to a follower until it has them on disk
	SnapsSent histogram.Summary // on the leader: snapshots under way whenever one more began, with it
	sending   atomic.Int64      // snapshots
	Diffs     atomic.Int64      // on the leader: followers that went on with its log; once in a leadership
}

// PerServer keeps a Summary for each other server.
type PerServer struct {
	mu sync.Mutex
	of map[uint64]*histogram.Summary
}

// observe counts d for a server.
func (p *PerServer) observe(id uint64, d time.Duration) {
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

// All returns the summaries by the server's id.
func (p *PerServer) All() map[uint64]*histogram.Summary {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.of)
}

// sendingSnapshot counts a snapshot that is sent to a follower until done is
// called.
func (c *Numbers) sendingSnapshot() (done func()) {
	c.SnapsSent.Observe(1, c.sending.Add(1))
	return func() { c.sending.Add(-1) }
}

// Numbers returns the counters, which go on counting.
func (n *Node) Numbers() *Numbers { return &n.machine.numbers }

// Reset forgets everything. What is counted at the same time may be lost.
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

// stale is how old an entry may be when it comes in and still count as news: an
// older one says how long this server was away, not how long entries take.
const stale = 10 * time.Second

// fresh observes in s how long ago at was, n times, if an entry of that time is
// news. A clock that runs ahead counts as none.
func fresh(s *histogram.Summary, n int64, at, now time.Time) {
	if d := now.Sub(at); d < stale && !at.IsZero() {
		s.Observe(n, int64(d))
	}
}

// countedLogs is the log as Raft gets it.
type countedLogs struct {
	raft.LogStore
	numbers *Numbers
	follows func() bool // entries come from a leader
}

var _ raft.MonotonicLogStore = countedLogs{}

// IsMonotonic passes on what the store says.
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
			fresh(&c.numbers.ToFollower, 1, l.AppendedAt, begin)
			fresh(&c.numbers.ToDisk, 1, l.AppendedAt, end)
		}
	}
	if follows {
		c.numbers.Received.Add(int64(len(logs)))
	}
	c.numbers.Bytes.Add(int64(size))
	return nil
}

// follows says whether this server's log is a copy of a leader's.
func (n *Node) follows() bool {
	r := n.raftNow()
	return r != nil && r.State() == raft.Follower
}

// batchNumbers is what applying a batch says of it.
type batchNumbers struct {
	own  bool  // this server made it, in its present leadership
	made int64 // by the clock of the leader, Unix milliseconds
	ops  int
}

// applied counts the entry whose application began at begin.
func (c *Numbers) applied(l *raft.Log, b *batchNumbers, begin time.Time) {
	end := time.Now()
	c.Apply.Observe(1, int64(end.Sub(begin)))
	if b.ops == 0 {
		return
	}
	ops, made := int64(b.ops), time.UnixMilli(b.made)
	c.Entries.Observe(1, ops)
	fresh(&c.ToApply, ops, made, end)
	if b.own {
		fresh(&c.QuorumAck, ops, l.AppendedAt, begin)
		return
	}
	c.Committed.Add(1)
	fresh(&c.ToCommit, ops, made, begin)
}

// taken counts a run that goes on its way: its age is that of its first command.
func (c *Numbers) taken(commands, waiting int, since time.Time) {
	c.Queued.Add(int64(commands))
	c.Waiting.Observe(1, int64(waiting))
	c.QueueTime.Observe(int64(commands), int64(time.Since(since)))
}

// countStart sums up what was done before clients were served for the first time.
func (n *Node) countStart() {
	c := n.Numbers()
	now := time.Now()
	load := c.Apply.Picture(now).Sum
	c.TxnsLoad.Observe(1, load)
	c.TxnsHeld.Observe(1, c.Entries.Picture(now).Sum)
	c.Init.Observe(1, int64(n.opening)+load)
}

// RaftState is what Raft says of itself.
type RaftState struct {
	Term                     uint64
	Last, Committed, Applied uint64 // indexes of the log
	SnapshotIndex            uint64
	Behind                   uint64        // entries committed and not applied
	Servers, Voters          int           // in its configuration
	Contact                  time.Duration // since the ensemble last confirmed this server; 0 for one alone
}

// RaftState returns the state of the moment; false until Raft runs.
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
