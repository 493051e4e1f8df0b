package raftfsm

import (
	"sync"
	"time"

	"github.com/zkgo/zkgo/session"
)

// deadlines tracks, on the leader, when sessions expire. Only the control goroutine
// changes it; the lock protects concurrent readers.
type deadlines struct {
	interval time.Duration    // between calls of expired
	now      func() time.Time // the clock for session timeouts
	real     func() time.Time // monotonic: shows whether this process was stopped

	mu       sync.Mutex
	tracker  *session.Tracker
	rows     map[int64]deadline // by session, since its last attach
	lastNow  time.Time          // at the last call of expired
	lastReal time.Time
}

// deadline has what the leader needs to expire a session.
type deadline struct {
	session int64
	// gen is the generation that expires. The session table may be ahead of the control
	// goroutine, so expiring the generation in the table could end the session of a
	// client that has just reconnected.
	gen     uint64
	timeout time.Duration
}

func newDeadlines(tick time.Duration, now, real func() time.Time) *deadlines {
	d := &deadlines{interval: max(tick/4, time.Millisecond), now: now, real: real, tracker: session.NewTracker(tick)}
	d.reset()
	return d
}

// reset forgets all sessions. It is called when this server starts or stops leading.
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

// expired returns the sessions that have expired. If this process was stopped (SIGSTOP,
// a paused virtual machine), its clients' pings are still in the socket buffers, so all
// sessions are credited with the time. A clock that was set forward while the process
// ran doesn't count as a stop.
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
