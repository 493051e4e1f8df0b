package client

import (
	"context"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// DeleteAll deletes the znode at path and everything below it. It is not atomic: it also
// deletes znodes that other clients create during the call, and if it fails, the znodes
// deleted so far stay deleted. It ignores znodes that are already gone, so it can safely
// retry after a lost connection.
func (c *Client) DeleteAll(ctx context.Context, path string) error {
	if err := c.check(proto.OpDelete, path); err != nil {
		return err
	}
	for {
		err := c.DeleteChildren(ctx, path)
		if err == nil {
			err = c.Delete(ctx, path, AnyVersion, Idempotent)
		}
		switch {
		case errors.Is(err, ErrNoNode):
			return nil
		case !errors.Is(err, ErrNotEmpty):
			return err
		}
	}
}

// DeleteChildren deletes everything below the znode at path. Otherwise it is like DeleteAll.
func (c *Client) DeleteChildren(ctx context.Context, path string) error {
	names, _, err := c.Children(ctx, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		child := strings.TrimSuffix(path, "/") + "/" + name
		// Most children are leaves, so we try a plain delete first.
		err := c.Delete(ctx, child, AnyVersion, Idempotent)
		if errors.Is(err, ErrNotEmpty) {
			err = c.DeleteAll(ctx, child)
		}
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	return nil
}
