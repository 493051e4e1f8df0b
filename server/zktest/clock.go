package zktest

import (
	"sync"
	"time"
)

// clock is a server's wall clock: real time plus what Advance has added.
type clock struct {
	mu      sync.Mutex
	ahead   time.Duration
	changed chan struct{} // closed and replaced by advance
}

func newClock() *clock { return &clock{changed: make(chan struct{})} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
	close(c.changed)
	c.changed = make(chan struct{})
}

// sleep returns true after d has passed, in real time or by Advance, and false if
// stop is closed first.
func (c *clock) sleep(d time.Duration, stop <-chan struct{}) bool {
	return c.sleepUntil(c.now().Add(d), stop)
}

// sleepUntil is like sleep, but the argument is a time of this clock.
func (c *clock) sleepUntil(end time.Time, stop <-chan struct{}) bool {
	for {
		c.mu.Lock()
		left, changed := time.Until(end.Add(-c.ahead)), c.changed
		c.mu.Unlock()
		if left <= 0 {
			return true
		}
		timer := time.NewTimer(left)
		select {
		case <-timer.C:
		case <-changed:
		case <-stop:
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// patience limits how long a method waits for an expected event.
const patience = 30 * time.Second

// The shortest and longest pause between two checks of poll.
const (
	firstPause   = 50 * time.Microsecond
	longestPause = 5 * time.Millisecond
)

// poll waits until ok returns true. It returns false after patience.
func poll(ok func() bool) bool {
	pause := firstPause
	for end := time.Now().Add(patience); !ok(); pause = min(2*pause, longestPause) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}
