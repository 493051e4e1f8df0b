package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Causes of a ConnectFailure.
var (
	// ErrTLSRequired is the cause when a server answers the plaintext handshake with a
	// TLS alert. Connect with [WithTLS], or to the plaintext port.
	ErrTLSRequired = errors.New("the server expects TLS")
	// ErrTLSHandshake is the cause when the TLS handshake fails. It wraps the reason.
	ErrTLSHandshake = errors.New("TLS handshake failed")
)

// ConnectFailure is the reason why one server could not be used.
type ConnectFailure struct {
	// Server is host:port, as in the connect string or the ensemble's configuration.
	Server string
	// Addr is the address that the Client tried, as ip:port; "" if it could not
	// resolve the host name.
	Addr string
	// Err is the cause.
	Err error
}

// Error returns the address, or the server if there is no address, and the cause.
func (f ConnectFailure) Error() string {
	if f.Addr == "" {
		return f.Server + ": " + f.Err.Error()
	}
	return f.Addr + ": " + f.Err.Error()
}

// Unwrap returns Err.
func (f ConnectFailure) Unwrap() error { return f.Err }

// failureList is an error that has one cause per server.
type failureList []ConnectFailure

// Error joins the texts of the causes.
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

// slowAttempt is the duration after which ConnectFailures reports an attempt in progress.
const slowAttempt = time.Second

// The steps of an attempt, with the errors that report a step that doesn't finish in time.
const (
	stepLookUp = "no answer from the name service"
	stepDial   = "no answer to the TCP connect"
	stepTLS    = "no answer to the TLS handshake"
	stepGreet  = "no answer to ZooKeeper's handshake"
)

// attempt is the connection attempt in progress.
type attempt struct {
	target
	step  string
	began time.Time // zero: no attempt
}

// failures is why there is no connection. core.mu guards it.
type failures struct {
	seed    []string         // the servers of the connect string, which order the list
	newest  error            // the last reason why there is no connection
	list    []ConnectFailure // by server, since the last connection; never changed in place
	attempt attempt
}

// add records a failure and removes an older one of the same address. We also drop a
// failure to resolve a host name once we have an address of that name, and vice versa.
func (f *failures) add(failure ConnectFailure) {
	f.list = slices.DeleteFunc(slices.Clone(f.list), func(old ConnectFailure) bool {
		return old.Server == failure.Server && (old.Addr == failure.Addr || old.Addr == "" || failure.Addr == "")
	})
	f.list = append(f.list, failure)
	slices.SortStableFunc(f.list, func(a, b ConnectFailure) int {
		return slices.Index(f.seed, a.Server) - slices.Index(f.seed, b.Server)
	})
}

// ConnectFailures returns why there is no connection: the newest failure of each address
// since the last connection, and the attempt in progress if it has lasted longer than a
// second. The list is empty while there is a connection.
func (c *Client) ConnectFailures() []ConnectFailure {
	c.core.mu.Lock()
	defer c.core.mu.Unlock()
	return c.core.failures.current()
}

// current implements ConnectFailures.
func (f *failures) current() []ConnectFailure {
	list := slices.Clone(f.list)
	a := f.attempt
	if took := time.Since(a.began); !a.began.IsZero() && took >= slowAttempt &&
		!slices.ContainsFunc(list, func(f ConnectFailure) bool { return f.Addr == a.addr }) {
		list = append(list, ConnectFailure{
			Server: a.name, Addr: a.addr, Err: fmt.Errorf("%s for %v", a.step, took.Round(time.Second)),
		})
	}
	return list
}

// why returns the reason why there is no connection.
func (f *failures) why() error {
	if list := f.current(); len(list) > 0 {
		return failureList(list)
	}
	if f.newest == nil {
		return errors.New("no server has answered yet")
	}
	return f.newest
}

// WithConnectFailures sets a function that the Client calls whenever it has tried all
// servers without success, with the newest failure of each. The function runs on the
// connecting goroutine and must return immediately.
func WithConnectFailures(f func([]ConnectFailure)) Option {
	return func(c *config) { c.connectFailed = f }
}

// attempting records the step that the attempt has reached.
func (c *connector) attempting(t target, step string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures.attempt.target, c.failures.attempt.step = t, step
	if c.failures.attempt.began.IsZero() {
		c.failures.attempt.began = time.Now()
	}
}

// late adds the current step to err if the attempt has exceeded its time limit.
func (c *connector) late(ctx context.Context, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() == nil || c.ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%s in %v: %w", c.failures.attempt.step, time.Since(c.failures.attempt.began).Round(time.Millisecond), err)
}

// attempted finishes the attempt and records its failures, if any.
func (c *connector) attempted(failures ...ConnectFailure) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures.attempt = attempt{}
	for _, f := range failures {
		c.failures.add(f)
	}
}

// tellFailures calls the function set by WithConnectFailures.
func (c *connector) tellFailures() {
	if c.cfg.connectFailed == nil {
		return
	}
	c.mu.Lock()
	list := slices.Clone(c.failures.list)
	c.mu.Unlock()
	c.cfg.connectFailed(list)
}
