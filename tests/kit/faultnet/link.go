package faultnet

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Link is the path from one end to another. Its methods may be called concurrently. They affect
// open connections immediately.
type Link struct {
	mu     sync.Mutex
	healed chan struct{} // nil: not cut; closed when it heals
	delay  time.Duration
	jitter time.Duration
	loss   float64
	rand   *rand.Rand
}

// stall is how long a lost packet delays the data after it: TCP's timeout before it retransmits.
const stall = 200 * time.Millisecond

// Cut lets nothing pass until Heal.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.healed == nil {
		l.healed = make(chan struct{})
	}
}

// Slow delays everything by d plus up to jitter, and keeps the order.
func (l *Link) Slow(d, jitter time.Duration) {
	l.mu.Lock()
	l.delay, l.jitter = d, jitter
	l.mu.Unlock()
}

// Lose makes TCP on this link behave as if each packet was lost with probability
// p: the data after it waits for 200 ms, and one time in twenty for longer.
func (l *Link) Lose(p float64) {
	l.mu.Lock()
	l.loss = p
	l.mu.Unlock()
}

// Heal ends all faults of the link.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay, l.jitter, l.loss = 0, 0, 0
	if l.healed != nil {
		close(l.healed)
		l.healed = nil
	}
}

// due returns when data sent now arrives, if the link is not cut then.
func (l *Link) due(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.delay
	if l.jitter > 0 {
		d += time.Duration(l.rand.Int64N(int64(l.jitter)))
	}
	if l.loss > 0 && l.rand.Float64() < l.loss {
		d += stall
		if l.rand.IntN(20) == 0 {
			d += 4 * stall
		}
	}
	return now.Add(d)
}

// barrier returns a channel that is closed when the link heals, or nil if it is
// not cut.
func (l *Link) barrier() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.healed
}

// pass waits until the link is not cut. It returns false if ended is closed
// first.
func (l *Link) pass(ended <-chan struct{}) bool {
	for {
		b := l.barrier()
		if b == nil {
			return true
		}
		select {
		case <-b:
		case <-ended:
			return false
		}
	}
}
