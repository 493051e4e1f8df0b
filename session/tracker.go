package session

import (
	"container/heap"
	"time"
)

// Tracker holds the deadlines of sessions on the leader. A deadline is rounded up
// to a whole tick, as in ZooKeeper: a session expires between its timeout and one
// tick later, counted from the last sign of life. Rounding also lets sessions share
// buckets, so that a touch is a map lookup in most cases.
//
// It is not safe for concurrent use. The caller passes the time.
type Tracker struct {
	tick     time.Duration
	start    time.Time // instant of bucket 0, moved by Credit
	sessions map[int64]*deadline
	buckets  map[int64]map[int64]struct{}
	order    bucketHeap // buckets that exist, the earliest first
}

// deadline is one session's entry.
type deadline struct {
	timeout time.Duration
	bucket  int64
}

// NewTracker returns an empty tracker with the given tick, which is positive.
func NewTracker(tick time.Duration) *Tracker {
	t := &Tracker{tick: tick}
	t.Reset()
	return t
}

// Reset forgets all sessions.
func (t *Tracker) Reset() {
	t.sessions = make(map[int64]*deadline)
	t.buckets = make(map[int64]map[int64]struct{})
	t.order = nil
	t.start = time.Time{}
}

// Add starts tracking a session. If the session is tracked already, Add gives it the
// new timeout, counted from now.
func (t *Tracker) Add(id int64, timeout time.Duration, now time.Time) {
	if t.start.IsZero() {
		t.start = now
	}
	d := t.sessions[id]
	if d == nil {
		d = &deadline{bucket: -1}
		t.sessions[id] = d
	} else {
		t.leave(id, d)
	}
	d.timeout = timeout
	t.enter(id, d, t.bucketAt(now.Add(timeout)))
}

// Touch records a sign of life at the given time. A time before one recorded earlier
// changes nothing: reports from several servers may arrive out of order.
func (t *Tracker) Touch(id int64, at time.Time) {
	d := t.sessions[id]
	if d == nil {
		return
	}
	if b := t.bucketAt(at.Add(d.timeout)); b > d.bucket {
		t.leave(id, d)
		t.enter(id, d, b)
	}
}

// Remove stops tracking a session.
func (t *Tracker) Remove(id int64) {
	if d := t.sessions[id]; d != nil {
		t.leave(id, d)
		delete(t.sessions, id)
	}
}

// Expired returns the sessions whose deadline has passed at now and stops tracking
// them. If the expiry of a session fails, the caller must Add it again.
func (t *Tracker) Expired(now time.Time) []int64 {
	var ids []int64
	for len(t.order) > 0 && !t.instant(t.order[0]).After(now) {
		b := heap.Pop(&t.order).(int64)
		for id := range t.buckets[b] {
			ids = append(ids, id)
			delete(t.sessions, id)
		}
		delete(t.buckets, b)
	}
	return ids
}

// Credit moves all deadlines into the future by d: after a pause of this process,
// its clients' pings are still in the socket buffers.
func (t *Tracker) Credit(d time.Duration) {
	if !t.start.IsZero() {
		t.start = t.start.Add(d)
	}
}

// Len returns the number of sessions tracked.
func (t *Tracker) Len() int { return len(t.sessions) }

// Deadlines returns the sessions by the time at which they would expire.
func (t *Tracker) Deadlines() map[time.Time][]int64 {
	m := make(map[time.Time][]int64, len(t.buckets))
	for b, ids := range t.buckets {
		for id := range ids {
			m[t.instant(b)] = append(m[t.instant(b)], id)
		}
	}
	return m
}

// bucketAt returns the first bucket that expires after at.
func (t *Tracker) bucketAt(at time.Time) int64 { return int64(at.Sub(t.start)/t.tick) + 1 }

// instant returns the time at which the sessions of bucket b expire.
func (t *Tracker) instant(b int64) time.Time { return t.start.Add(time.Duration(b) * t.tick) }

// enter puts a session into bucket b.
func (t *Tracker) enter(id int64, d *deadline, b int64) {
	ids := t.buckets[b]
	if ids == nil {
		ids = make(map[int64]struct{})
		t.buckets[b] = ids
		heap.Push(&t.order, b)
	}
	ids[id] = struct{}{}
	d.bucket = b
}

// leave removes a session from its bucket. An empty bucket stays until its time has
// come: it costs nothing and is often filled again.
func (t *Tracker) leave(id int64, d *deadline) { delete(t.buckets[d.bucket], id) }

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
