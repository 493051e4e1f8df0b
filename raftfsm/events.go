package raftfsm

import (
	"sync"
	"time"

	"github.com/zkgo/zkgo/raftfsm/internal/apply"
)

// event is a message to the control goroutine, mostly from the state machine. The state
// machine must not wait for the control goroutine, so the queue is unbounded; events
// are few.
type event struct {
	kind    eventKind
	state   apply.Event // evState
	session int64       // evTouched
	at      time.Time   // evTouched
	do      func()      // evDo
	err     error       // evFailed
}

type eventKind uint8

const (
	evState eventKind = iota
	evTouched
	evFailed
	// evDo runs a function on the control goroutine.
	evDo
)

// mailbox is the unbounded queue of events.
type mailbox struct {
	wake chan struct{}
	mu   sync.Mutex
	list []event
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post queues copies of the events as one group.
func (b *mailbox) post(list []event) {
	b.mu.Lock()
	b.list = append(b.list, list...)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take empties the queue and returns the events.
func (b *mailbox) take() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list = nil
	return list
}

// applied queues the state machine's events as one group.
func (b *mailbox) applied(events []apply.Event) {
	list := make([]event, len(events))
	for i := range events {
		list[i] = event{kind: evState, state: events[i]}
	}
	b.post(list)
}

// touched queues sessions that another server has heard from now.
func (b *mailbox) touched(sessions []int64, now time.Time) {
	list := make([]event, len(sessions))
	for i, id := range sessions {
		list[i] = event{kind: evTouched, session: id, at: now}
	}
	b.post(list)
}

// do makes the control goroutine run f.
func (b *mailbox) do(f func()) { b.post([]event{{kind: evDo, do: f}}) }

// fail makes the control goroutine stop the server.
func (b *mailbox) fail(err error) { b.post([]event{{kind: evFailed, err: err}}) }
