package apply

import (
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/zkgo/zkgo/internal/histogram"
)

// Counters are the machine's counters. All fields can be read at any time. Durations are in
// nanoseconds.
type Counters struct {
	Entries   histogram.Summary // commands in a log entry, observed when it is applied
	QuorumAck histogram.Summary // on the leader, from handing an entry to Raft until it is committed
	Committed atomic.Int64      // entries of other leaders that were applied here
	ToCommit  histogram.Summary // on a follower: from the leader's creation of an entry until it is about to be applied here
	ToApply   histogram.Summary // until it is applied on any server, by the clocks of the leader and that server

	Apply    histogram.Summary // applying an entry
	Expired  atomic.Int64      // sessions that ended by their timeout, counted by the leader
	Snapshot histogram.Summary // writing a snapshot
	SnapSize atomic.Int64      // bytes of the newest snapshot written
	Writing  atomic.Int64      // snapshots being written
	Compared atomic.Int64      // digests of a mirrored ensemble that have matched
}

// stale is the age at which an arriving entry no longer counts. Its delay would show how
// long this server was away rather than how long an entry needs.
const stale = 10 * time.Second

// ObserveAge observes in s, n times, the age of an entry created at at, unless it is stale.
// A negative age, from a clock that runs ahead, counts as zero.
func ObserveAge(s *histogram.Summary, n int64, at, now time.Time) {
	if d := now.Sub(at); d < stale && !at.IsZero() {
		s.Observe(n, int64(d))
	}
}

// batchNumbers are the statistics of an applied batch.
type batchNumbers struct {
	own  bool  // this server made it in its current leadership
	made int64 // on the leader's clock, Unix milliseconds
	ops  int
}

// applied counts an entry. begin is when the machine started to apply it.
func (c *Counters) applied(l *raft.Log, b *batchNumbers, begin time.Time) {
	end := time.Now()
	c.Apply.Observe(1, int64(end.Sub(begin)))
	if b.ops == 0 {
		return
	}
	ops, made := int64(b.ops), time.UnixMilli(b.made)
	c.Entries.Observe(1, ops)
	ObserveAge(&c.ToApply, ops, made, end)
	if b.own {
		ObserveAge(&c.QuorumAck, ops, l.AppendedAt, begin)
		return
	}
	c.Committed.Add(1)
	ObserveAge(&c.ToCommit, ops, made, begin)
}
