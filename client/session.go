package client

import (
	"context"
	"time"
)

// Session identifies a session. Whoever has it can resume the session with
// [WithSession]: the password is a secret.
type Session struct {
	ID       int64
	Password []byte
	// Timeout is what the server granted.
	Timeout time.Duration
}

// Session returns the current session; its ID is 0 before the first one and
// between two.
func (c *Client) Session() Session {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.sess
}

// SessionDeadline returns the instant at which the session counts as lost if no
// further request is answered: its timeout after the sending of the last request
// that was. It is on the monotonic clock, and the zero Time without a session. A
// server cannot end the session earlier unless it is out of touch with its
// leader: see [Lease] for that.
func (c *Client) SessionDeadline() time.Time {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.deadline()
}

// InSession returns a view of c whose operations are done in the session with
// this ID, or fail with [ErrSessionExpired]: none is done in a later session.
func (c *Client) InSession(id int64) *Client {
	v := *c
	v.session = id
	return &v
}

// inThisSession returns c for the current session only, and waits for one.
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

// deadline is SessionDeadline; c.mu is held.
func (c *core) deadline() time.Time {
	if c.sess.ID == 0 {
		return time.Time{}
	}
	return c.lastContact.Add(c.sess.Timeout)
}

// contact notes that a request sent at at was answered; c.mu is held.
func (c *core) contact(at time.Time, confirmed bool) {
	if at.After(c.lastContact) {
		c.lastContact = at
	}
	if confirmed && at.After(c.lastConfirmed) {
		c.lastConfirmed = at
	}
}

// lose ends the session; c.mu is held.
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
		c.link = nil // what begins now is not of the session that has ended
	}
	if c.cfg.noNewSession && c.final == nil {
		c.final, c.finalCode = ErrSessionExpired, ErrSessionExpired
	}
	c.publish(StateChange{State: StateLost, Session: old, Err: cause})
}
