package raftfsm

import (
	"sync"
	"time"

	"github.com/zkgo/zkgo/session"
)

// deadlines says on the leader which sessions have to end. The control
// goroutine changes it; the lock is for those who look.
type deadlines struct {
	interval time.Duration    // how often expired is called
	now      func() time.Time // the clock that sessions live by
	real     func() time.Time // monotonic: shows whether this process stood still

	mu       sync.Mutex
	tracker  *session.Tracker
	lastNow  time.Time // at the last call of expired
	lastReal time.Time
}

func newDeadlines(tick time.Duration, now, real func() time.Time) *deadlines {
	return &deadlines{interval: max(tick/4, time.Millisecond), now: now, real: real, tracker: session.NewTracker(tick)}
}

// reset forgets everything: this server does not lead, or begins to.
func (d *deadlines) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tracker.Reset()
	d.lastNow, d.lastReal = time.Time{}, time.Time{}
}

func (d *deadlines) attached(id int64, timeout time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tracker.Len() == 0 {
		d.lastNow, d.lastReal = d.now(), d.real()
	}
	d.tracker.Add(id, timeout, d.now())
}

func (d *deadlines) ended(id int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tracker.Remove(id)
}

func (d *deadlines) touched(id int64, at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tracker.Touch(id, at)
}

func (d *deadlines) empty() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tracker.Len() == 0
}

// expired returns the sessions whose time has come. When this process stood
// still (SIGSTOP, a paused virtual machine) the pings of its clients still wait
// in the sockets' buffers: the time is credited to everybody. A clock that was
// set forward under a process that ran all the time is none of that.
func (d *deadlines) expired() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, real := d.now(), d.real()
	if !d.lastReal.IsZero() {
		pause := min(now.Sub(d.lastNow), real.Sub(d.lastReal)) - d.interval
		if pause > d.interval {
			d.tracker.Credit(pause)
		}
	}
	d.lastNow, d.lastReal = now, real
	return d.tracker.Expired(now)
}

func (d *deadlines) snapshot() map[time.Time][]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tracker.Deadlines()
}
