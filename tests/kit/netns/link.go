package netns

import (
	"math/rand/v2"
	"sync"
	"time"
)

// Link is one direction from one host to another. Its methods may be called
// concurrently, and apply to the next packet. Without faults, every packet is
// forwarded immediately.
type Link struct {
	deliver func([]byte)

	mu     sync.Mutex
	rand   *rand.Rand
	cut    bool
	loss   float64
	large  int // packets of this size and larger are lost; 0: none
	delay  time.Duration
	jitter time.Duration
	rate   int64 // bits per second; 0: unlimited
	depth  time.Duration
	free   time.Time // when the link has finished sending at this rate
	last   time.Time // due time of the newest packet in the queue
	queue  []queued
	timer  *time.Timer
}

type queued struct {
	due time.Time
	raw []byte
}

// Cut drops every packet.
func (l *Link) Cut() { l.set(func() { l.cut = true }) }

// Lose drops each packet with probability p.
func (l *Link) Lose(p float64) { l.set(func() { l.loss = p }) }

// DropLarge drops packets with an IP length of size bytes or more, like a tunnel with a small MTU
// if a firewall drops the ICMP messages.
func (l *Link) DropLarge(size int) { l.set(func() { l.large = size }) }

// Slow delays every packet by d plus up to jitter, and keeps their order.
func (l *Link) Slow(d, jitter time.Duration) { l.set(func() { l.delay, l.jitter = d, jitter }) }

// Rate limits the link to a number of bits per second. Packets that would wait
// in its queue for longer than depth are dropped.
func (l *Link) Rate(bits int64, depth time.Duration) { l.set(func() { l.rate, l.depth = bits, depth }) }

// Heal ends all faults of the link. Queued packets still arrive when they are
// due.
func (l *Link) Heal() {
	l.set(func() { l.cut, l.loss, l.large, l.delay, l.jitter, l.rate, l.depth = false, 0, 0, 0, 0, 0, 0 })
}

func (l *Link) set(f func()) {
	l.mu.Lock()
	f()
	l.mu.Unlock()
}

// send forwards a packet now or later, or drops it. It keeps raw only by copying
// it.
func (l *Link) send(raw []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut || l.large > 0 && len(raw) >= l.large || l.loss > 0 && l.rand.Float64() < l.loss {
		return
	}
	if l.delay == 0 && l.rate == 0 && len(l.queue) == 0 {
		l.deliver(raw)
		return
	}
	now := time.Now()
	due := now
	if l.rate > 0 {
		due = later(l.free, now)
		if due.Sub(now) > l.depth {
			return
		}
		due = due.Add(time.Duration(int64(len(raw)) * 8 * int64(time.Second) / l.rate))
		l.free = due
	}
	due = due.Add(l.delay)
	if l.jitter > 0 {
		due = due.Add(time.Duration(l.rand.Int64N(int64(l.jitter))))
	}
	due = later(due, l.last)
	l.last = due
	l.queue = append(l.queue, queued{due, append([]byte(nil), raw...)})
	if len(l.queue) == 1 {
		l.arm(due.Sub(now))
	}
}

// arm calls drain after d. The caller holds the lock.
func (l *Link) arm(d time.Duration) {
	if l.timer == nil {
		l.timer = time.AfterFunc(d, l.drain)
		return
	}
	l.timer.Reset(d)
}

// drain delivers the packets that are due. Packets in the queue are lost if the
// link is cut.
func (l *Link) drain() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	n := 0
	for n < len(l.queue) && !l.queue[n].due.After(now) {
		if !l.cut {
			l.deliver(l.queue[n].raw)
		}
		n++
	}
	l.queue = l.queue[n:]
	if len(l.queue) > 0 {
		l.arm(l.queue[0].due.Sub(now))
	}
}

// stop drops the queue.
func (l *Link) stop() {
	l.set(func() {
		l.queue, l.cut = nil, true
		if l.timer != nil {
			l.timer.Stop()
		}
	})
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
