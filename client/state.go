package client

import (
	"strconv"
	"sync"
)

// State is what a Client knows of its connection and session.
type State int32

// The states.
const (
	// StateConnecting is where a Client begins, before its first session.
	StateConnecting State = iota
	// StateConnected: a session has begun, the first one or one after Lost.
	StateConnected
	// StateSuspended: the connection broke. The session lives on at the servers,
	// and with it ephemeral znodes; operations wait.
	StateSuspended
	// StateReconnected: the session goes on, watches are set again.
	StateReconnected
	// StateLost: the session is over, or its time must be over at the servers as
	// well, though none could be asked. Its ephemeral znodes and watches are gone.
	// Another session begins by itself, unless [WithoutNewSession] was given.
	StateLost
	// StateReadOnly: the connection is to a server without a quorum, which answers
	// reads only. See [WithReadOnly].
	StateReadOnly
	// StateAuthFailed: a server refused the credentials. It is final, unless
	// they were those of a call of AddAuth, which are forgotten then.
	StateAuthFailed
	// StateClosed: Close was called. It is final.
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

// Connected reports whether operations are answered in this state; writes are
// refused in StateReadOnly.
func (s State) Connected() bool {
	return s == StateConnected || s == StateReconnected || s == StateReadOnly
}

// StateChange is one element of the stream of states.
type StateChange struct {
	State State
	// Session is the session that it is about.
	Session int64
	// Err is why, for StateSuspended, StateLost and StateAuthFailed.
	Err error
}

// stateBuffer is how many changes wait for a subscriber before old ones are
// left out.
const stateBuffer = 64

// StateSubscription is a stream of states. It is safe for concurrent use.
type StateSubscription struct {
	client *core
	ch     chan StateChange
	mu     sync.Mutex // serializes put and close
	closed bool
}

// C returns the channel of changes, beginning with the state at the time of
// Subscribe. It is closed after StateClosed and by Close. Nobody waits for its
// reader: one who falls more than 64 changes behind misses some, but no
// StateLost and not the newest one.
func (s *StateSubscription) C() <-chan StateChange { return s.ch }

// Close ends the subscription.
func (s *StateSubscription) Close() {
	s.client.mu.Lock()
	delete(s.client.subscribers, s)
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

// put appends a change. When there is no room it leaves out old ones: only this
// method sends, so what it takes out it can put back in order.
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
	// One of many losses says as much as all of them.
	if room := cap(s.ch) / 2; len(lost) > room {
		lost = lost[len(lost)-room:]
	}
	for _, l := range append(lost, c) {
		s.ch <- l
	}
}

// Subscribe returns a stream of the states from now on; the current one comes
// first. It has to be closed when nobody wants it any more.
func (c *Client) Subscribe() *StateSubscription {
	s := &StateSubscription{client: c.core, ch: make(chan StateChange, stateBuffer)}
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	s.put(c.core.last)
	if c.core.finished {
		s.end()
		return s
	}
	c.core.subscribers[s] = struct{}{}
	return s
}

// State returns the current state.
func (c *Client) State() State {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.last.State
}

// publish makes a change known; c.mu is held.
func (c *core) publish(ch StateChange) {
	c.last = ch
	for s := range c.subscribers {
		s.put(ch)
	}
	c.changed()
}

// changed wakes everybody who waits for the state to change; c.mu is held.
func (c *core) changed() {
	close(c.change)
	c.change = make(chan struct{})
}
