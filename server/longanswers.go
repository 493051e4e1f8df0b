package server

import (
	"container/list"
	"sync"
	"time"
)

// Lists of connections, sessions and watches grow with the number of clients. Anyone
// who reaches a port may ask for them, and may then not read the answer. So only
// maxLongAnswers of them exist at a time. While another one waits, the oldest is cut off
// once it has taken longAnswerTime: a client that reads needs less than that.
const (
	maxLongAnswers = 8
	longAnswerTime = 500 * time.Millisecond
)

// longAnswers counts the lists that are being sent, over all ports.
type longAnswers struct {
	slots chan struct{}
	time  time.Duration // longAnswerTime
	mu    sync.Mutex
	open  list.List // of longAnswer, oldest first; those that were cut off are not in it
}

type longAnswer struct {
	cut   func()
	since time.Time
}

func newLongAnswers() *longAnswers {
	return &longAnswers{slots: make(chan struct{}, maxLongAnswers), time: longAnswerTime}
}

// begin waits for its turn. cut ends the answer early; it may be called from any
// goroutine, and must not block. The caller calls end when the answer has been sent or
// has failed.
func (l *longAnswers) begin(cut func()) (end func()) { return l.beginUnless(nil, cut) }

// beginUnless is begin for a client that may leave while it waits. It then returns nil.
func (l *longAnswers) beginUnless(gone <-chan struct{}, cut func()) (end func()) {
	if !l.wait(gone) {
		return nil
	}
	l.mu.Lock()
	e := l.open.PushBack(longAnswer{cut, time.Now()})
	l.mu.Unlock()
	return func() {
		l.mu.Lock()
		l.open.Remove(e)
		l.mu.Unlock()
		<-l.slots
	}
}

// wait takes a slot. It returns false if gone is closed first.
func (l *longAnswers) wait(gone <-chan struct{}) bool {
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

// cutOldest cuts the oldest answer off if there is no free slot and the answer has taken
// its time. It returns when the next answer will have taken its time.
func (l *longAnswers) cutOldest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.open.Front()
	if e == nil || len(l.slots) < cap(l.slots) {
		return l.time
	}
	oldest := e.Value.(longAnswer)
	if left := l.time - time.Since(oldest.since); left > 0 {
		return left
	}
	l.open.Remove(e)
	oldest.cut()
	return l.time / maxLongAnswers
}
