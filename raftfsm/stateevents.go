package raftfsm

import (
	"time"

	"github.com/zkgo/zkgo/session"
)

// stateEvent is a change of the state that the control goroutine acts on.
type stateEvent struct {
	kind        stateEventKind
	server      uint64        // started; NoServer: the LeaderStart is in a snapshot, and Raft knows the leader
	incarnation uint64        // started
	session     int64         // attached, ended
	gen         uint64        // attached
	timeout     time.Duration // attached
}

type stateEventKind uint8

// The kinds of stateEvent.
const (
	// started: a LeaderStart was applied. If this server proposed it, an attached for
	// every session of the table follows in the same post.
	started stateEventKind = iota
	attached
	ended
)

// attachedEvent returns the event for a session with a new connection.
func attachedEvent(s session.Session) stateEvent {
	timeout := time.Duration(s.Timeout) * time.Millisecond
	return stateEvent{kind: attached, session: s.ID, gen: s.Gen, timeout: timeout}
}
