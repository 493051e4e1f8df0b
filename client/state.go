package client

import (
	"strconv"
	"sync"
)

// State is the state of a Client's connection and session.
type State int32

// The states.
const (
	// StateConnecting is the initial state, before the first session.
	StateConnecting State = iota
	// StateConnected: a session has begun, the first one or one after StateLost.
	StateConnected
	// StateSuspended: the connection broke. The servers keep the session and its
	// ephemeral znodes, and operations wait.
	StateSuspended
	// StateReconnected: the session continues, and the Client has set its watches
	// again.
	StateReconnected
	// StateLost: the session has ended, or, if no server was reachable, must have
	// timed out on the servers too. Its ephemeral znodes and watches are gone. The
	// Client begins another session unless [WithoutNewSession] was given.
	StateLost
	// StateReadOnly: the Client is connected to a server without a quorum, which
	// answers only reads. See [WithReadOnly].
	StateReadOnly
	// StateAuthFailed: a server refused the credentials. The state is final, unless
	// the credentials came from AddAuth, in which case the Client forgets them.
	StateAuthFailed
	// StateClosed: Close was called. The state is final.
	StateClosed
)

// String returns the state's name.
func (s State) String() string {
	names := [...]string{"Connecting", "Connected", "Suspended", "Reconnected", "Lost", "ReadOnly", "AuthFailed", "Closed"}
	if s < 0 || int(s) >= len(names) {
		return "State(" + strconv.Itoa(int(s)) + ")"
	}
	return names[s]
}

// Connected reports whether servers answer operations in this state. In StateReadOnly
// they refuse writes.
func (s State) Connected() bool {
	return s == StateConnected || s == StateReconnected || s == StateReadOnly
}

// StateChange is one element of a StateSubscription.
type StateChange struct {
	State State
	// Session is the ID of the session that changed.
	Session int64
	// Err is the cause, for StateSuspended, StateLost and StateAuthFailed.
	Err error
}

// states is the current state and its readers. core.mu guards it.
type states struct {
	last        StateChange
	change      chan struct{} // closed when anything changes that an operation waits for
	subscribers map[*StateSubscription]struct{}
	finished    bool // the last change was published
}

// stateBuffer is how many changes a subscription buffers before it drops old ones.
const stateBuffer = 64

// StateSubscription is a stream of states. It is safe for concurrent use.
type StateSubscription struct {
	client *core
	ch     chan StateChange
	mu     sync.Mutex // serializes put and close
	closed bool
}

// C returns the channel of changes. The first one is the state at the time of Subscribe.
// The channel is closed after StateClosed and by Close. The Client doesn't wait for the
// reader. If more than 64 changes are unread, we drop some, but never the newest change or
// the 32 newest StateLost.
func (s *StateSubscription) C() <-chan StateChange { return s.ch }

// Close ends the subscription.
func (s *StateSubscription) Close() {
	s.client.mu.Lock()
	delete(s.client.states.subscribers, s)
	s.client.mu.Unlock()
	s.end()
}

func (s *StateSubscription) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.ch)
	}
}

// put appends a change. When the channel is full, we drop old changes. Only put sends on the
// channel, so we can remove changes and put them back in order.
func (s *StateSubscription) put(c StateChange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	select {
	case s.ch <- c:
		return
	default:
	}
	var lost []StateChange
	for range cap(s.ch) {
		select {
		case old := <-s.ch:
			if old.State == StateLost {
				lost = append(lost, old)
			}
		default:
		}
	}
	// We keep only the newest losses: the older ones tell the reader nothing new.
	if room := cap(s.ch) / 2; len(lost) > room {
		lost = lost[len(lost)-room:]
	}
	for _, l := range append(lost, c) {
		s.ch <- l
	}
}

// Subscribe returns a stream of states. The first one is the current state. The
// caller must close the subscription.
func (c *Client) Subscribe() *StateSubscription {
	s := &StateSubscription{client: c.core, ch: make(chan StateChange, stateBuffer)}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	s.put(c.core.states.last)
	if c.core.states.finished {
		s.end()
		return s
	}
	c.core.states.subscribers[s] = struct{}{}
	return s
}

// State returns the current state.
func (c *Client) State() State {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.states.last.State
}

// publish sets the current state and notifies the subscribers.
func (s *states) publish(ch StateChange) {
	s.last = ch
	for sub := range s.subscribers {
		sub.put(ch)
	}
	s.changed()
}

// changed wakes the goroutines that wait for a state change.
func (s *states) changed() {
	close(s.change)
	s.change = make(chan struct{})
}

// finish publishes the last change and ends all subscriptions.
func (s *states) finish(ch StateChange) {
	s.publish(ch)
	for sub := range s.subscribers {
		sub.end()
	}
	clear(s.subscribers)
	s.finished = true
}
