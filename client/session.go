package client

import (
	"context"
	"fmt"
	"time"
)

// Session identifies a session. Any program that has it can resume the session with
// [WithSession], so you should treat the password as a secret.
type Session struct {
	ID       int64
	Password []byte
	// Timeout is the timeout that the server granted.
	Timeout time.Duration
}

// session is the current session and what servers have answered in it. core.mu guards it.
//
// Invariant: every time is when a request was about to be written. A server counts from a
// later time, so it ends the session no earlier than deadline.
type session struct {
	Session             // zero: none
	zxid      int64     // the newest that a reply contained
	contacted time.Time // the newest request that was answered
	confirmed time.Time // the newest that the leader confirmed
	losses    uint64    // sessions lost
	began     bool      // a session has begun
}

// Session returns the current session. Its ID is 0 before the first session and
// between two sessions.
func (c *Client) Session() Session {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.session.Session
}

// SessionDeadline returns the time at which the session counts as lost if no further
// request is answered: the session timeout after the Client sent the last request that was
// answered. The time is on the monotonic clock, and zero without a session. The ensemble
// doesn't end the session earlier unless our server has lost contact with its leader; see
// [Lease] for that case.
func (c *Client) SessionDeadline() time.Time {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.session.deadline()
}

// InSession returns a view of c. Operations of the view run in the session with this ID or
// fail with [ErrSessionExpired], and never run in a later session.
func (c *Client) InSession(id int64) *Client {
	v := *c
	v.session = id
	return &v
}

// AwaitSession returns the current session. If there is none, AwaitSession waits for
// the next one, even if sessions begin and are lost while it waits. It fails when ctx
// ends and when no other session can begin, e.g. with [ErrClosed]. In a view of one
// session (see InSession), it fails with [ErrSessionExpired] after that session.
func (c *Client) AwaitSession(ctx context.Context) (Session, error) {
	return c.awaitSession(ctx, "session")
}

// awaitSession implements AwaitSession for the operation op.
func (c *Client) awaitSession(ctx context.Context, op string) (Session, error) {
	k := c.core
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		switch {
		case k.end.err != nil:
			return Session{}, k.end.failure(op, "")
		case c.session != 0 && c.session != k.session.ID:
			return Session{}, &Error{Op: op, Code: ErrSessionExpired}
		case k.session.ID != 0:
			return k.session.Session, nil
		case ctx.Err() != nil:
			return Session{}, &Error{Op: op, Err: fmt.Errorf("no session (%w): %w", k.failures.why(), context.Cause(ctx))}
		}
		change := k.states.change
		k.mu.Unlock()
		select {
		case <-change:
		case <-ctx.Done():
		}
		k.mu.Lock()
	}
}

// inThisSession returns a view of c for the current session only. It waits for one if
// there is none.
func (c *Client) inThisSession(ctx context.Context) (*Client, error) {
	if c.session != 0 {
		return c, nil
	}
	s, err := c.awaitSession(ctx, "create2")
	if err != nil {
		return nil, err
	}
	return c.InSession(s.ID), nil
}

// deadline implements SessionDeadline.
func (s *session) deadline() time.Time {
	if s.ID == 0 {
		return time.Time{}
	}
	return s.contacted.Add(s.Timeout)
}

// contact records that a request sent at time at was answered.
func (s *session) contact(at time.Time, confirmed bool) {
	s.contacted = later(at, s.contacted)
	if confirmed {
		s.confirmed = later(at, s.confirmed)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lose ends the session. The caller holds c.mu.
func (c *core) lose(cause error) {
	if c.session.ID == 0 {
		return
	}
	old := c.session.ID
	c.session.Session = Session{}
	c.session.zxid = 0
	c.session.losses++
	c.log.Warn("session lost", "session", sessionText(old), "cause", cause)
	c.leases.endAll(ErrSessionExpired)
	c.watches.endAll(ErrSessionExpired)
	if c.link != nil {
		c.link.fail(ErrSessionExpired)
		c.link = nil // new operations don't belong to the lost session
	}
	if c.cfg.noNewSession && c.end.err == nil {
		c.end.err, c.end.code = ErrSessionExpired, ErrSessionExpired
	}
	c.states.publish(StateChange{State: StateLost, Session: old, Err: cause})
}
