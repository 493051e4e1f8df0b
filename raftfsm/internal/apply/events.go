package apply

import (
	"time"

	"github.com/zkgo/zkgo/internal/mirrored"
	"github.com/zkgo/zkgo/session"
)

// Event is a change of the state that the control goroutine acts on.
type Event struct {
	Kind        EventKind
	Server      uint64            // Started; NoServer: the LeaderStart is in a snapshot, and Raft knows the leader
	Incarnation uint64            // Started
	Session     int64             // Attached, Ended
	Gen         uint64            // Attached
	Timeout     time.Duration     // Attached
	Forward     *mirrored.Forward // Forwarded
}

// EventKind is the kind of an Event.
type EventKind uint8

// The kinds of Event.
const (
	// Started: a LeaderStart was applied. If this server proposed it, an Attached for
	// every session of the table follows in the same post.
	Started EventKind = iota
	Attached
	Ended
	// Forwarded: a client's request must go to the mirrored ensemble.
	Forwarded
)

// attachedEvent returns the event for a session with a new connection.
func attachedEvent(s session.Session) Event {
	timeout := time.Duration(s.Timeout) * time.Millisecond
	return Event{Kind: Attached, Session: s.ID, Gen: s.Gen, Timeout: timeout}
}
