package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrTLSRequired is the cause when a server answers the plaintext handshake with a
// TLS alert. Connect with [WithTLS], or to the port for plaintext.
var ErrTLSRequired = errors.New("the server expects TLS")

// ErrTLSHandshake is the cause when the TLS handshake fails. It wraps the reason.
var ErrTLSHandshake = errors.New("TLS handshake failed")

// ConnectFailure says why one server could not be used.
type ConnectFailure struct {
	// Server is host:port, as the connect string or the ensemble's configuration
	// names it.
	Server string
	// Addr is the address that was tried, as ip:port; "" if the host's name could
	// not be looked up.
	Addr string
	// Err is the cause.
	Err error
}

// Error names the address, or the server without one, and the cause.
func (f ConnectFailure) Error() string {
	if f.Addr == "" {
		return f.Server + ": " + f.Err.Error()
	}
	return f.Addr + ": " + f.Err.Error()
}

// Unwrap returns the cause.
func (f ConnectFailure) Unwrap() error { return f.Err }

// failureList is an error that names the cause for each server.
type failureList []ConnectFailure

// Error joins the causes.
func (l failureList) Error() string {
	texts := make([]string, len(l))
	for i, f := range l {
		texts[i] = f.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the failures.
func (l failureList) Unwrap() []error {
	errs := make([]error, len(l))
	for i, f := range l {
		errs[i] = f
	}
	return errs
}

// slowAttempt is how long an attempt takes before it counts as a failure that is
// worth reporting.
const slowAttempt = time.Second

// The steps of an attempt, as a failure names the one that takes too long.
const (
	stepLookUp = "no answer from the name service"
	stepDial   = "no answer to the TCP connect"
	stepTLS    = "no answer to the TLS handshake"
	stepGreet  = "no answer to ZooKeeper's handshake"
)

// attempt is the connect that is under way.
type attempt struct {
	target
	step  string
	began time.Time // zero: there is none
}

// attempting notes how far the attempt has got.
func (c *core) attempting(t target, step string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempt.target, c.attempt.step = t, step
	if c.attempt.began.IsZero() {
		c.attempt.began = time.Now()
	}
}

// late names the step that an attempt has not got through in time.
func (c *core) late(ctx context.Context, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil || c.ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%s in %v: %w", c.attempt.step, time.Since(c.attempt.began).Round(time.Millisecond), err)
}

// attempted ends the attempt and notes its failure, if it has one.
func (c *core) attempted(failures ...ConnectFailure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempt = attempt{}
	for _, f := range failures {
		c.failed(f)
	}
}

// failed notes a failure, in the place of an older one; c.mu is held. The first
// address of a name also replaces the failure to look that name up, and the other
// way round.
func (c *core) failed(f ConnectFailure) {
	c.failures = slices.DeleteFunc(slices.Clone(c.failures), func(old ConnectFailure) bool {
		return old.Server == f.Server && (old.Addr == f.Addr || old.Addr == "" || f.Addr == "")
	})
	c.failures = append(c.failures, f)
	slices.SortStableFunc(c.failures, func(a, b ConnectFailure) int {
		return slices.Index(c.hosts.seed, a.Server) - slices.Index(c.hosts.seed, b.Server)
	})
}

// ConnectFailures returns why there is no connection: the newest failure of each
// address since there was one, and the attempt under way if it takes longer than a
// second. The list is empty while there is a connection.
func (c *Client) ConnectFailures() []ConnectFailure {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.connectFailures()
}

// connectFailures is ConnectFailures; c.mu is held.
func (c *core) connectFailures() []ConnectFailure {
	list := slices.Clone(c.failures)
	a := c.attempt
	if took := time.Since(a.began); !a.began.IsZero() && took >= slowAttempt &&
		!slices.ContainsFunc(list, func(f ConnectFailure) bool { return f.Addr == a.addr }) {
		list = append(list, ConnectFailure{
			Server: a.name, Addr: a.addr, Err: fmt.Errorf("%s for %v", a.step, took.Round(time.Second)),
		})
	}
	return list
}

// WithConnectFailures calls a function whenever all servers have been tried without
// success, with the newest failure of each. It is called on the goroutine that
// connects and must return at once.
func WithConnectFailures(f func([]ConnectFailure)) Option {
	return func(c *config) { c.connectFailed = f }
}

// tellFailures calls that function.
func (c *core) tellFailures() {
	if c.cfg.connectFailed == nil {
		return
	}
	c.mu.Lock()
	list := slices.Clone(c.failures)
	c.mu.Unlock()
	c.cfg.connectFailed(list)
}
