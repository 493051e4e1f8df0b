package raftfsm

import (
	"sync"
	"time"

	"github.com/zkgo/zkgo/session"
)

// event is what the control goroutine is told, mostly by the state machine. The
// machine must not wait for it, so events queue without a bound; they are few.
type event struct {
	kind        eventKind
	server      uint64        // evStarted; noServer: a snapshot holds the leaderStart, and Raft knows whose it was
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
	// evStarted: a leaderStart was applied. If it is this server's own, an
	// evAttached for every session of the table follows in the same post.
	evStarted eventKind = iota
	evAttached
	evEnded
	evTouched
	evFailed
	// evDo runs a function on the control goroutine.
	evDo
)

// attachedEvent is the event of a session that has a new connection.
func attachedEvent(s session.Session) event {
	timeout := time.Duration(s.Timeout) * time.Millisecond
	return event{kind: evAttached, session: s.ID, gen: s.Gen, timeout: timeout}
}

// mailbox queues events.
type mailbox struct {
	wake chan struct{}
	mu   sync.Mutex
	list []event
}

func newMailbox() *mailbox { return &mailbox{wake: make(chan struct{}, 1)} }

// post queues copies of the events, together.
func (b *mailbox) post(list []event) {
	b.mu.Lock()
	b.list = append(b.list, list...)
	b.mu.Unlock()
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// take returns what has queued up.
func (b *mailbox) take() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list = nil
	return list
}
