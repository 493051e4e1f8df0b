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
	rows     map[int64]deadline // of every session since its last attach
	lastNow  time.Time          // at the last call of expired
	lastReal time.Time
}

// deadline is what has to be known to end a session.
type deadline struct {
	session int64
	// gen is the generation whose time it is. The table may be ahead of what
	// the control goroutine was told: to end the generation there could end the
	// session of a client that has just come back.
	gen     uint64
	timeout time.Duration
}

func newDeadlines(tick time.Duration, now, real func() time.Time) *deadlines {
	d := &deadlines{interval: max(tick/4, time.Millisecond), now: now, real: real, tracker: session.NewTracker(tick)}
	d.reset()
	return d
}

// reset forgets everything: this server does not lead, or begins to.
func (d *deadlines) reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tracker.Reset()
	d.rows = make(map[int64]deadline)
	d.lastNow, d.lastReal = time.Time{}, time.Time{}
}

// attached gives a session a full timeout from now.
func (d *deadlines) attached(row deadline) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tracker.Len() == 0 {
		d.lastNow, d.lastReal = d.now(), d.real()
	}
	d.rows[row.session] = row
	d.tracker.Add(row.session, row.timeout, d.now())
}

func (d *deadlines) ended(id int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.rows, id)
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
func (d *deadlines) expired() []deadline {
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
	var rows []deadline
	for _, id := range d.tracker.Expired(now) {
		rows = append(rows, d.rows[id])
		delete(d.rows, id)
	}
	return rows
}

func (d *deadlines) snapshot() map[time.Time][]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tracker.Deadlines()
}
