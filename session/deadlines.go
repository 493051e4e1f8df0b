package session

import (
	"container/heap"
	"sync"
	"time"
)

// Deadlines is the leader's part of the rule in liveness.go: it decides when sessions
// expire. A deadline is rounded up to a whole tick, as in ZooKeeper: a session expires
// between its timeout and one tick later, counted from the last sign of life. Rounding
// also lets sessions share buckets, so recording a sign of life usually costs one map
// lookup.
//
// Only the leader's control goroutine changes it. The lock is for concurrent readers.
type Deadlines struct {
	tick time.Duration

	mu       sync.Mutex
	start    time.Time // instant of bucket 0, moved by credit
	sessions map[int64]*entry
	buckets  map[int64]map[int64]struct{}
	order    bucketHeap // buckets that exist, the earliest first
	last     Clocks     // at the last call of Expired
}

// Deadline contains the data that the leader needs to expire a session.
type Deadline struct {
	Session int64
	// Gen is the generation that expires. The session table may be newer than our
	// deadlines. If we expired the generation in the table, we could end the session of a
	// client that has just reconnected.
	Gen     uint64
	Timeout time.Duration
}

// entry is one session's deadline.
type entry struct {
	Deadline
	bucket int64
}

// Clocks is one reading of two clocks.
type Clocks struct {
	Now     time.Time // the clock for session timeouts
	Running time.Time // monotonic: shows whether this process was stopped
}

// NewDeadlines returns Deadlines without sessions. The tick is positive.
func NewDeadlines(tick time.Duration) *Deadlines {
	d := &Deadlines{tick: tick}
	d.Reset()
	return d
}

// Interval returns the time between two calls of Expired.
func (d *Deadlines) Interval() time.Duration { return max(d.tick/4, time.Millisecond) }

// Reset forgets all sessions. A server calls it when it starts or stops leading.
func (d *Deadlines) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions = make(map[int64]*entry)
	d.buckets = make(map[int64]map[int64]struct{})
	d.order = nil
	d.start, d.last = time.Time{}, Clocks{}
}

// Attached gives a session a full timeout from now.
func (d *Deadlines) Attached(s Deadline, now Clocks) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.sessions) == 0 {
		d.last = now // without sessions, nothing calls Expired
	}
	if d.start.IsZero() {
		d.start = now.Now
	}
	e := d.sessions[s.Session]
	if e == nil {
		e = &entry{bucket: -1}
		d.sessions[s.Session] = e
	} else {
		d.leave(e)
	}
	e.Deadline = s
	d.enter(e, d.bucketAt(now.Now.Add(s.Timeout)))
}

// Heard records a sign of life at the given time. It ignores a time that is older than
// the recorded time, because reports from several servers may arrive out of order.
func (d *Deadlines) Heard(id int64, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.sessions[id]
	if e == nil {
		return
	}
	if b := d.bucketAt(at.Add(e.Timeout)); b > e.bucket {
		d.leave(e)
		d.enter(e, b)
	}
}

// Ended forgets a session.
func (d *Deadlines) Ended(id int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.sessions[id]; e != nil {
		d.leave(e)
		delete(d.sessions, id)
	}
}

// Expired returns the sessions that have expired, and forgets them.
//
// leads reports whether no other server can be leading. If one can, it may have heard from
// the sessions that seem to have expired, so they get another full timeout. Expired
// calls leads last, and only if a session has expired, because the check may need a round trip.
func (d *Deadlines) Expired(now Clocks, leads func() bool) []Deadline {
	due := d.check(now)
	if len(due) == 0 || leads() {
		return due
	}
	for _, s := range due {
		d.Attached(s, now)
	}
	return nil
}

// check credits a pause and returns the overdue sessions.
//
// If this process was stopped (SIGSTOP, a paused virtual machine), its clients' pings are
// still in the socket buffers, so all sessions are credited with the time. A clock that
// was set forward while the process ran doesn't count as a stop.
func (d *Deadlines) check(now Clocks) []Deadline {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.last.Running.IsZero() {
		pause := min(now.Now.Sub(d.last.Now), now.Running.Sub(d.last.Running)) - d.Interval()
		if pause > d.Interval() {
			d.credit(pause)
		}
	}
	d.last = now
	return d.takeOverdue(now.Now)
}

// takeOverdue removes and returns the sessions with deadlines that have passed at now.
func (d *Deadlines) takeOverdue(now time.Time) (due []Deadline) {
	for len(d.order) > 0 && !d.instant(d.order[0]).After(now) {
		b := heap.Pop(&d.order).(int64)
		for id := range d.buckets[b] {
			due = append(due, d.sessions[id].Deadline)
			delete(d.sessions, id)
		}
		delete(d.buckets, b)
	}
	return due
}

// credit moves all deadlines into the future.
func (d *Deadlines) credit(by time.Duration) {
	if !d.start.IsZero() {
		d.start = d.start.Add(by)
	}
}

// Empty reports whether there are no sessions.
func (d *Deadlines) Empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sessions) == 0
}

// ByTime returns the sessions by the time at which they would expire.
func (d *Deadlines) ByTime() map[time.Time][]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := make(map[time.Time][]int64, len(d.buckets))
	for b, ids := range d.buckets {
		for id := range ids {
			m[d.instant(b)] = append(m[d.instant(b)], id)
		}
	}
	return m
}

// bucketAt returns the first bucket that expires after at.
func (d *Deadlines) bucketAt(at time.Time) int64 { return int64(at.Sub(d.start)/d.tick) + 1 }

// instant returns the time at which the sessions of bucket b expire.
func (d *Deadlines) instant(b int64) time.Time { return d.start.Add(time.Duration(b) * d.tick) }

// enter puts a session into bucket b.
func (d *Deadlines) enter(e *entry, b int64) {
	ids := d.buckets[b]
	if ids == nil {
		ids = make(map[int64]struct{})
		d.buckets[b] = ids
		heap.Push(&d.order, b)
	}
	ids[e.Session] = struct{}{}
	e.bucket = b
}

// leave removes a session from its bucket. An empty bucket stays until its time: it costs
// nothing and often fills again.
func (d *Deadlines) leave(e *entry) { delete(d.buckets[e.bucket], e.Session) }

// bucketHeap orders buckets by time for container/heap.
type bucketHeap []int64

func (h bucketHeap) Len() int           { return len(h) }
func (h bucketHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h bucketHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *bucketHeap) Push(x any) { *h = append(*h, x.(int64)) }

// Pop implements heap.Interface.
func (h *bucketHeap) Pop() any {
	old := *h
	b := old[len(old)-1]
	*h = old[:len(old)-1]
	return b
}
