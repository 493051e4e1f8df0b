package client

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/proto"
)

// Client is a connection to an ensemble, or a view of one: Namespace, InSession
// and others return views, which share connection, session and Close. All
// methods are safe for concurrent use. The zero Client is of no use.
//
// Where a method does not say otherwise: without a connection it waits for one until
// ctx ends; a connection that breaks under it is [ErrConnectionLoss], for a write
// [ErrUnknownOutcome] too, unless the [RetryPolicy] has it repeated; the end of the
// session is [ErrSessionExpired], and what the server refuses an [*Error] with its
// code. See the package's documentation.
type Client struct {
	core    *core
	prefix  string // chroot and namespace
	session int64  // operations must happen in it; 0: any
	wrong   error  // about the namespace: every operation says so
	retry   RetryPolicy
}

// Connect opens a session with one of the servers of a connect string:
//
//	host1:port1,host2:port2,…/chroot
//
// A port is 2181 if not given, an IPv6 address with a port stands in brackets,
// and with a chroot, which need not exist yet, every path is seen from there.
// The servers are tried in random order.
//
// It returns when the session has begun; if ctx ends before, it gives up and says
// why the last server was of no use. [WithLazy] makes it return at once. ctx has
// no meaning for the Client afterwards.
func Connect(ctx context.Context, connectString string, opts ...Option) (*Client, error) {
	addrs, chroot, err := parseConnectString(connectString)
	if err != nil {
		return nil, err
	}
	cfg := newConfig(opts)
	if cfg.timeout <= 0 {
		return nil, fmt.Errorf("client: a session timeout of %v", cfg.timeout)
	}
	core := newCore(cfg, addrs)
	c := &Client{core: core, prefix: chroot, retry: cfg.retry}
	core.start()
	if cfg.follow {
		core.wg.Go(c.followConfig)
	}
	if cfg.lazy {
		return c, nil
	}
	if err := core.awaitFirst(ctx); err != nil {
		_ = c.Close() // what went wrong before says more
		return nil, err
	}
	return c, nil
}

// Await returns when there is a connection. If ctx ends before, the error says why
// the last server was of no use.
func (c *Client) Await(ctx context.Context) error { return c.core.awaitFirst(ctx) }

// awaitFirst waits for the first session, or for the connection of a later one.
func (c *core) awaitFirst(ctx context.Context) error {
	for {
		c.mu.Lock()
		change, state, final, losses := c.change, c.last.State, c.final, c.losses
		c.mu.Unlock()
		switch {
		case final != nil:
			return fmt.Errorf("client: connect: %w", final)
		case c.cfg.session.ID != 0 && losses > 0:
			return fmt.Errorf("client: connect: session %s: %w", sessionText(c.cfg.session.ID), ErrSessionExpired)
		case state.Connected():
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			c.mu.Lock()
			defer c.mu.Unlock()
			return fmt.Errorf("client: connect: no session (%w): %w", c.why(), context.Cause(ctx))
		}
	}
}

// Close ends the session, so that its ephemeral znodes go at once, closes the
// connection and waits for all goroutines of the Client. If no server answers
// within a third of the session's timeout, the session is left to its timeout
// and the error says so. Operations under way end with [ErrClosed], watches and
// leases end. Closing a view closes the Client. A second call returns nil.
func (c *Client) Close() error { return c.core.close() }

// Namespace returns a view of c in which "/x" stands for prefix + "/x". Watches
// and results of the view show paths as the view sees them. "/" changes nothing. The
// prefix need not exist: see [CreateParents]. If it is no path, every operation of
// the view says so.
func (c *Client) Namespace(prefix string) *Client {
	v := *c
	if err := proto.ValidatePath(prefix); err != nil && v.wrong == nil {
		v.wrong = fmt.Errorf("namespace %q: %w", prefix, err)
	}
	if prefix != "/" {
		v.prefix += prefix
	}
	return &v
}

// FullPath returns path as the server knows it, with chroot and namespace.
func (c *Client) FullPath(path string) string { return joinPath(c.prefix, path) }

// Retrying returns a view of c with another retry policy.
func (c *Client) Retrying(p RetryPolicy) *Client {
	v := *c
	v.retry = p
	return &v
}

// check refuses a path before it is sent.
func (c *Client) check(op proto.Op, path string) error {
	err := c.wrong
	if err == nil {
		err = proto.ValidatePath(path)
	}
	if err != nil {
		return &Error{Op: op.String(), Path: path, Code: ErrBadArguments, Err: err}
	}
	return nil
}
