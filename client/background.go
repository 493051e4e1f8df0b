package client

import (
	"context"
	"errors"
)

// inBackground runs work that outlives its caller. We retry until the work succeeds, the
// server refuses it permanently, the session is lost, or the Client is closed.
func (c *Client) inBackground(what, path string, work func(ctx context.Context, v *Client) error) {
	k := c.core
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.end.closing || k.end.err != nil {
		return
	}
	v := *c
	v.retry = NoRetry()
	k.wg.Go(func() {
		pause := newBackoff(reconnectBase, reconnectMax)
		for k.ctx.Err() == nil {
			err := work(k.ctx, &v)
			if err == nil {
				return
			}
			k.log.Warn(what+" in the background failed", "path", path, "cause", err)
			if errors.Is(err, ErrClosed) || errors.Is(err, ErrSessionExpired) || refusedForGood(err) {
				return
			}
			pause.sleep(k.ctx)
		}
	})
}

// refusedForGood reports whether the server refused a request and would refuse it again,
// i.e. whether a retry is pointless.
func refusedForGood(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Code < 0 && e.Code != ErrConnectionLoss && e.Code != ErrThrottledOp &&
		e.Code != ErrNotReadOnly
}

// deleteInBackground deletes one znode and retries until it is gone.
func (c *Client) deleteInBackground(path string, version int32) {
	c.inBackground("delete", path, func(ctx context.Context, v *Client) error {
		err := v.Delete(ctx, path, version)
		if errors.Is(err, ErrNoNode) {
			return nil
		}
		return err
	})
}

// deleteProtectedInBackground deletes the znode with a mark, if there is one. We stop when
// the session is lost, because that deletes an ephemeral znode anyway.
func (c *Client) deleteProtectedInBackground(path, mark string) {
	c.inBackground("delete of a protected create", path, func(ctx context.Context, v *Client) error {
		found, _, ok, err := v.findProtected(ctx, path, mark)
		if err != nil || !ok {
			return err
		}
		if err = v.Delete(ctx, found, AnyVersion); errors.Is(err, ErrNoNode) {
			return nil
		}
		return err
	})
}
