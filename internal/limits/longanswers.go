package limits

import (
	"container/list"
	"sync"
	"time"
)

// Lists of connections, sessions and watches grow with the number of clients. Any client
// that reaches a port may request such a list and then not read the answer, so we send only
// MaxLongAnswers lists at a time. If another one waits, we cut off the oldest after
// LongAnswerTime: a client that reads needs less time.
const (
	MaxLongAnswers = 8
	LongAnswerTime = 500 * time.Millisecond
)

// LongAnswers counts the lists that are being sent, over all ports.
type LongAnswers struct {
	slots chan struct{}
	Time  time.Duration // LongAnswerTime
	mu    sync.Mutex
	open  list.List // of *LongAnswer, oldest first, without answers that were cut off
}

// LongAnswer is one list that is being made or sent.
type LongAnswer struct {
	of    *LongAnswers
	place *list.Element
	cut   func()
	since time.Time // when sending began, zero before; guarded by of.mu
}

// NewLongAnswers returns LongAnswers with nothing to send.
func NewLongAnswers() *LongAnswers {
	return &LongAnswers{slots: make(chan struct{}, MaxLongAnswers), Time: LongAnswerTime}
}

// Begin waits for its turn. cut ends the answer early; it may be called from any goroutine,
// and must not block. Begin returns nil if gone is closed first, i.e. if the client has left
// while it waited.
func (l *LongAnswers) Begin(gone <-chan struct{}, cut func()) *LongAnswer {
	if !l.wait(gone) {
		return nil
	}
	a := &LongAnswer{of: l, cut: cut}
	l.mu.Lock()
	a.place = l.open.PushBack(a)
	l.mu.Unlock()
	return a
}

// Sending records that the list is complete. From now on, its client can delay it.
func (a *LongAnswer) Sending() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
}

// End records that the answer was sent or failed.
func (a *LongAnswer) End() {
	a.of.mu.Lock()
	a.of.open.Remove(a.place)
	a.of.mu.Unlock()
	<-a.of.slots
}

// wait waits for a slot. It returns false if gone is closed first.
func (l *LongAnswers) wait(gone <-chan struct{}) bool {
	for {
		next := time.NewTimer(l.cutOldest())
		select {
		case l.slots <- struct{}{}:
			next.Stop()
			return true
		case <-gone:
			next.Stop()
			return false
		case <-next.C:
		}
	}
}

// cutOldest cuts off the oldest answer if there is no free slot and the answer has used up
// its time. It returns the time of the next check.
func (l *LongAnswers) cutOldest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.slots) < cap(l.slots) {
		return l.Time
	}
	soonest := l.Time
	for e := l.open.Front(); e != nil; e = e.Next() {
		a := e.Value.(*LongAnswer)
		if a.since.IsZero() {
			continue
		}
		left := l.Time - time.Since(a.since)
		if left <= 0 {
			l.open.Remove(e)
			a.cut()
			return l.Time / MaxLongAnswers
		}
		soonest = min(soonest, left)
	}
	return soonest
}
