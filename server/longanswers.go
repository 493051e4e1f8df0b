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
	open  list.List // of *longAnswer, oldest first; those that were cut off are not in it
}

// longAnswer is one list that is being made or sent.
type longAnswer struct {
	of    *longAnswers
	place *list.Element
	cut   func()
	since time.Time // when sending began, zero before; guarded by of.mu
}

func newLongAnswers() *longAnswers {
	return &longAnswers{slots: make(chan struct{}, maxLongAnswers), time: longAnswerTime}
}

// begin waits for its turn. cut ends the answer early; it may be called from any
// goroutine, and must not block. begin returns nil if gone is closed first: the client has
// left while it waited.
func (l *longAnswers) begin(gone <-chan struct{}, cut func()) *longAnswer {
	if !l.wait(gone) {
		return nil
	}
	a := &longAnswer{of: l, cut: cut}
	l.mu.Lock()
	a.place = l.open.PushBack(a)
	l.mu.Unlock()
	return a
}

// sending says that the list has been made. From now on, its client can hold it up.
func (a *longAnswer) sending() {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if a.since.IsZero() {
		a.since = time.Now()
	}
}

// end says that the answer has been sent or has failed.
func (a *longAnswer) end() {
	a.of.mu.Lock()
	a.of.open.Remove(a.place)
	a.of.mu.Unlock()
	<-a.of.slots
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

// cutOldest cuts the oldest answer off if there is no free slot and the answer has been
// sent for its time. It returns when to look again.
func (l *longAnswers) cutOldest() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.slots) < cap(l.slots) {
		return l.time
	}
	soonest := l.time
	for e := l.open.Front(); e != nil; e = e.Next() {
		a := e.Value.(*longAnswer)
		if a.since.IsZero() {
			continue
		}
		left := l.time - time.Since(a.since)
		if left <= 0 {
			l.open.Remove(e)
			a.cut()
			return l.time / maxLongAnswers
		}
		soonest = min(soonest, left)
	}
	return soonest
}
