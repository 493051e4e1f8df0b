package client

import (
	"context"
	"fmt"

	"github.com/zkgo/zkgo/proto"
)

// Client is a connection to an ensemble, or a view of one. Namespace, InSession and
// other methods return views, which share the connection, the session and Close. All
// methods are safe for concurrent use. The zero Client is not usable.
//
// Unless a method says otherwise, it waits for a connection until ctx ends. If the
// connection breaks during the operation and the [RetryPolicy] does not repeat it,
// the method returns [ErrConnectionLoss], which for a write also matches
// [ErrUnknownOutcome]. If the session ends, the method returns [ErrSessionExpired].
// If the server refuses the operation, the method returns an [*Error] with the
// server's code. See the package documentation.
type Client struct {
	core    *core
	prefix  string // chroot and namespace
	session int64  // operations must run in it; 0: any
	wrong   error  // the namespace is invalid; every operation returns this
	retry   RetryPolicy
}

// Connect opens a session with one of the servers of a connect string:
//
//	host1:port1,host2:port2,…/chroot
//
// The default port is 2181. An IPv6 address with a port needs brackets. If the string has a
// chroot, all paths are relative to it. The chroot need not exist yet. The Client tries the
// servers in random order.
//
// Connect returns when the session has been established. If ctx ends first, the error gives
// a reason for each server. [WithLazy] makes it return immediately. The Client does not use
// ctx after Connect returns.
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
		_ = c.Close() // err says more
		return nil, err
	}
	return c, nil
}

// Await waits until the Client is connected. If ctx ends first, the error gives a reason
// for each server.
func (c *Client) Await(ctx context.Context) error { return c.core.awaitFirst(ctx) }

// awaitFirst waits for the first session, or for the connection of a later one.
func (c *core) awaitFirst(ctx context.Context) error {
	for {
		c.mu.Lock()
		change, state, final, losses := c.states.change, c.states.last.State, c.end.err, c.session.losses
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
			return fmt.Errorf("client: connect: no session (%w): %w", c.failures.why(), context.Cause(ctx))
		}
	}
}

// Close ends the session, closes the connection and waits for all goroutines of the
// Client. The server then deletes the session's ephemeral znodes immediately. If no
// server answers within a third of the session timeout, Close returns an error, and
// the session ends when it times out. Pending operations return [ErrClosed], and
// watches and leases end. Closing a view closes the Client. A second call returns
// nil.
func (c *Client) Close() error { return c.core.close() }

// Namespace returns a view of c in which "/x" means prefix + "/x". Watches and results of
// the view show paths without the prefix. Namespace("/") changes nothing. The prefix need
// not exist, see [CreateParents]. If it is not a valid path, every operation of the view
// fails with [ErrBadArguments].
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

// FullPath returns path with chroot and namespace, as the server sees it.
func (c *Client) FullPath(path string) string { return joinPath(c.prefix, path) }

// Retrying returns a view of c with another retry policy.
func (c *Client) Retrying(p RetryPolicy) *Client {
	v := *c
	v.retry = p
	return &v
}

// check returns an error for a path that the server would refuse.
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
