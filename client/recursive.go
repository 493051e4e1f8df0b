package client

import (
	"context"
	"errors"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// DeleteAll deletes the znode at path and all below it. It is not atomic: what
// others create meanwhile is deleted too, and what is done when it fails remains
// done. What is gone already is no error, so a lost connection is retried.
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

// DeleteChildren deletes all below the znode at path, as DeleteAll does.
func (c *Client) DeleteChildren(ctx context.Context, path string) error {
	names, _, err := c.Children(ctx, path)
	if err != nil {
		return err
	}
	for _, name := range names {
		child := strings.TrimSuffix(path, "/") + "/" + name
		// Most are leaves.
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
