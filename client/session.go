package client

import (
	"context"
	"time"
)

// Session identifies a session. Anyone who has it can resume the session with
// [WithSession], so the password is a secret.
type Session struct {
	ID       int64
	Password []byte
	// Timeout is the timeout that the server granted.
	Timeout time.Duration
}

// Session returns the current session. Its ID is 0 before the first session and
// between two sessions.
func (c *Client) Session() Session {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.sess
}

// SessionDeadline returns the time at which the session counts as lost if no further
// request is answered: the session timeout after the Client sent the last request
// that was answered. The time is on the monotonic clock, and zero without a session.
// A server can't end the session earlier unless it has lost contact with its leader;
// see [Lease] for that case.
func (c *Client) SessionDeadline() time.Time {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.deadline()
}

// InSession returns a view of c whose operations run in the session with this ID or
// fail with [ErrSessionExpired]. None of them runs in a later session.
func (c *Client) InSession(id int64) *Client {
	v := *c
	v.session = id
	return &v
}

// inThisSession returns a view of c for the current session only. It waits for one if
// there is none.
func (c *Client) inThisSession(ctx context.Context) (*Client, error) {
	if c.session != 0 {
		return c, nil
	}
	for {
		c.core.mu.Lock()
		id, change, final, code := c.core.sess.ID, c.core.change, c.core.final, c.core.finalCode
		c.core.mu.Unlock()
		switch {
		case final != nil:
			return nil, &Error{Op: "create2", Code: code, Err: final}
		case id != 0:
			return c.InSession(id), nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, &Error{Op: "create2", Err: context.Cause(ctx)}
		}
	}
}

// deadline implements SessionDeadline. The caller holds c.mu.
func (c *core) deadline() time.Time {
	if c.sess.ID == 0 {
		return time.Time{}
	}
	return c.lastContact.Add(c.sess.Timeout)
}

// contact records that a request sent at time at was answered. The caller holds c.mu.
func (c *core) contact(at time.Time, confirmed bool) {
	if at.After(c.lastContact) {
		c.lastContact = at
	}
	if confirmed && at.After(c.lastConfirmed) {
		c.lastConfirmed = at
	}
}

// lose ends the session. The caller holds c.mu.
func (c *core) lose(cause error) {
	if c.sess.ID == 0 {
		return
	}
	old := c.sess.ID
	c.sess = Session{}
	c.lastZxid = 0
	c.losses++
	c.log.Warn("session lost", "session", sessionText(old), "cause", cause)
	c.endLeases()
	c.watches.endAll(ErrSessionExpired)
	if c.link != nil {
		c.link.fail(ErrSessionExpired)
		c.link = nil // new operations don't belong to the lost session
	}
	if c.cfg.noNewSession && c.final == nil {
		c.final, c.finalCode = ErrSessionExpired, ErrSessionExpired
	}
	c.publish(StateChange{State: StateLost, Session: old, Err: cause})
}
