package client

import (
	"context"
	"time"
)

// LeasePolicy says when a [Lease] ends. The zero value is the default.
type LeasePolicy struct {
	// Margin is how long before the server can have ended the session a Lease
	// ends. 0 stands for a third of the session's timeout, which covers that a
	// server tells its leader of its clients only now and then, and clocks that
	// run at different speed.
	Margin time.Duration
	// Unconfirmed counts from the last request that any server answered. By
	// default only answers count which the leader took part in, and while there is
	// a Lease the Client asks for one (with sync) where it would send a ping. A
	// server that has lost its leader goes on answering pings for a while, during
	// which the leader may end the session.
	Unconfirmed bool
}

// Lease is the certainty that a session has not ended: while it holds, the
// servers have not deleted the session's ephemeral znodes. It is safe for
// concurrent use.
//
// Done is closed, and Err says so, a margin before a server can have ended the
// session; if an answer comes in time the end moves on, and a broken connection
// alone does not end it. The time runs on this machine's monotonic clock, from
// before the sending of a request. What it rests on: no clock runs faster than
// another by more than the margin allows, and the clock runs while the process
// stands still (on Linux it does not while the whole machine is suspended).
//
// A goroutine that was stopped after asking Err can be overtaken all the same:
// what must not happen after the session's end has to be checked where it
// happens, by a fencing token.
type Lease struct {
	core    *core
	session int64
	done    chan struct{}

	// guarded by core.mu
	over bool
	err  error
}

// Lease takes a lease on the current session. It has to be released.
// It waits for a session, and until the leader has confirmed it.
func (c *Client) Lease(ctx context.Context) (*Lease, error) {
	for {
		c.core.mu.Lock()
		var err error
		switch {
		case c.core.final != nil:
			err = &Error{Op: "lease", Code: c.core.finalCode, Err: c.core.final}
		case c.session != 0 && c.core.sess.ID != c.session:
			err = &Error{Op: "lease", Code: ErrSessionExpired}
		}
		if err != nil {
			c.core.mu.Unlock()
			return nil, err
		}
		if c.core.sess.ID != 0 && time.Now().Before(c.core.leaseEnd()) {
			l := &Lease{core: c.core, session: c.core.sess.ID, done: make(chan struct{})}
			c.core.leases[l] = struct{}{}
			c.core.poke()
			c.core.mu.Unlock()
			return l, nil
		}
		c.core.mu.Unlock()
		if err := c.Sync(ctx, "/"); err != nil {
			return nil, err
		}
	}
}

// Done returns a channel that is closed when the lease has ended.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Err returns nil while the lease holds, and [ErrSessionExpired], [ErrClosed] or
// [context.Canceled] (after Release) when it does not. It looks at the clock, so
// it is right even if Done could not be closed yet because the process had
// been stopped.
func (l *Lease) Err() error {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	if !l.over && !time.Now().Before(l.core.leaseEnd()) {
		l.end(ErrSessionExpired)
		delete(l.core.leases, l)
	}
	return l.err
}

// Deadline returns when the lease ends unless a server answers before: the zero
// Time once it has ended.
func (l *Lease) Deadline() time.Time {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	if l.over {
		return time.Time{}
	}
	return l.core.leaseEnd()
}

// Session returns the id of the session that the lease is on.
func (l *Lease) Session() int64 { return l.session }

// Release ends the lease. Only the first call does anything.
func (l *Lease) Release() {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	l.end(context.Canceled)
	delete(l.core.leases, l)
}

// end closes Done; core.mu is held.
func (l *Lease) end(err error) {
	if !l.over {
		l.over, l.err = true, err
		close(l.done)
	}
}

// leaseEnd is when leases end; c.mu is held.
func (c *core) leaseEnd() time.Time {
	margin := c.cfg.lease.Margin
	if margin <= 0 {
		margin = c.sess.Timeout / 3
	}
	from := c.lastConfirmed
	if c.cfg.lease.Unconfirmed {
		from = c.lastContact
	}
	return from.Add(c.sess.Timeout - margin)
}

// endLeases ends all leases with the session; c.mu is held.
func (c *core) endLeases() {
	for l := range c.leases {
		l.end(ErrSessionExpired)
	}
	clear(c.leases)
}
