package client

import (
	"context"
	"time"
)

// LeasePolicy determines when a [Lease] ends. The zero value is the default.
type LeasePolicy struct {
	// Margin is how long a Lease ends before the earliest time at which the server can end
	// the session. 0 means a third of the session timeout. The margin covers the delay with
	// which a server reports its clients to the leader, and clocks that run at different
	// rates.
	Margin time.Duration
	// Unconfirmed makes the lease count from the last reply of any server. By default only
	// replies that the leader has confirmed count, and while there is a Lease, the Client
	// sends syncs instead of pings. A server that has lost its leader continues answering
	// pings for a while, and during that time the leader may end the session.
	Unconfirmed bool
}

// Lease guarantees that a session has not ended: while the lease is valid, the servers have
// not deleted the session's ephemeral znodes. It is safe for concurrent use.
//
// The lease ends, Done is closed and Err returns an error, a margin before any server can
// expire the session. A reply that arrives in time extends the lease ([LeasePolicy]
// determines which replies count), and a broken connection alone does not end it. The lease
// uses this machine's monotonic clock and counts from the time before the request was sent.
// It assumes that no clock runs faster than another by more than the margin allows, and that
// the clock runs while the process is stopped (on Linux it doesn't run while the whole
// machine is suspended).
type Lease struct {
	core    *core
	session int64
	done    chan struct{}

	// guarded by core.mu
	over bool
	err  error
}

// leases is the set of leases that are still valid. core.mu guards it.
type leases map[*Lease]struct{}

// Lease returns a lease on the current session. It waits for a session that the leader has
// confirmed. The caller must release the lease.
func (c *Client) Lease(ctx context.Context) (*Lease, error) {
	for {
		c.core.mu.Lock()
		err := c.core.end.failure("lease", "")
		if err == nil && c.session != 0 && c.core.session.ID != c.session {
			err = &Error{Op: "lease", Code: ErrSessionExpired}
		}
		if err != nil {
			c.core.mu.Unlock()
			return nil, err
		}
		if c.core.session.ID != 0 && time.Now().Before(c.core.session.leaseEnd(c.core.cfg.lease)) {
			l := &Lease{core: c.core, session: c.core.session.ID, done: make(chan struct{})}
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

// Done returns a channel that is closed when the lease ends.
func (l *Lease) Done() <-chan struct{} { return l.done }

// Err returns nil while the lease is valid, and [ErrSessionExpired], [ErrClosed] or
// [context.Canceled] (after Release) when it doesn't. Err reads the clock, so it is correct
// even if the process was stopped (e.g. by SIGSTOP) and Done isn't closed yet.
func (l *Lease) Err() error {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	if !l.over && !time.Now().Before(l.core.session.leaseEnd(l.core.cfg.lease)) {
		l.end(ErrSessionExpired)
		delete(l.core.leases, l)
	}
	return l.err
}

// Deadline returns when the lease ends unless a server replies before, or the zero
// Time if it has ended.
func (l *Lease) Deadline() time.Time {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	if l.over {
		return time.Time{}
	}
	return l.core.session.leaseEnd(l.core.cfg.lease)
}

// Session returns the id of the lease's session.
func (l *Lease) Session() int64 { return l.session }

// Release ends the lease. Later calls do nothing.
func (l *Lease) Release() {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	l.end(context.Canceled)
	delete(l.core.leases, l)
}

// end closes Done. The caller holds core.mu.
func (l *Lease) end(err error) {
	if !l.over {
		l.over, l.err = true, err
		close(l.done)
	}
}

// leaseEnd returns when leases end.
func (s *session) leaseEnd(p LeasePolicy) time.Time {
	margin := p.Margin
	if margin <= 0 {
		margin = s.Timeout / 3
	}
	from := s.confirmed
	if p.Unconfirmed {
		from = s.contacted
	}
	return from.Add(s.Timeout - margin)
}

// endAll ends all leases.
func (s leases) endAll(err error) {
	for l := range s {
		l.end(err)
	}
	clear(s)
}
