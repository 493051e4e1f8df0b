package raftfsm

import (
	"sync"
	"time"

	"github.com/zkgo/zkgo/session"
)

// event is a message to the control goroutine, mostly from the state machine. The state
// machine must not wait for the control goroutine, so the queue is unbounded; events
// are few.
type event struct {
	kind        eventKind
	server      uint64        // evStarted; NoServer: the LeaderStart is in a snapshot, and Raft knows the leader
	incarnation uint64        // evStarted
	session     int64         // evAttached, evEnded, evTouched
	gen         uint64        // evAttached
	timeout     time.Duration // evAttached
	at          time.Time     // evTouched
	do          func()        // evDo
	err         error         // evFailed
}

type eventKind uint8

const (
	// evStarted: a LeaderStart was applied. If this server proposed it, an evAttached for
	// every session of the table follows in the same post.
	evStarted eventKind = iota
	evAttached
	evEnded
	evTouched
	evFailed
	// evDo runs a function on the control goroutine.
	evDo
)

// attachedEvent returns the event for a session with a new connection.
func attachedEvent(s session.Session) event {
	timeout := time.Duration(s.Timeout) * time.Millisecond
	return event{kind: evAttached, session: s.ID, gen: s.Gen, timeout: timeout}
}

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

// take removes and returns the queued events.
func (b *mailbox) take() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list = nil
	return list
}
