package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// protectedPrefix starts the name of every znode created with [Protected], as in
// Curator.
const protectedPrefix = "_c_"

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// protect inserts "_c_<uuid>-" before the last name of a path.
func protect(path string) (protected, mark string) {
	mark = protectedPrefix + newUUID() + "-"
	i := strings.LastIndexByte(path, '/') + 1
	return path[:i] + mark + path[i:], mark
}

// createProtected creates a znode with a unique mark in its name, so that we can find the
// znode again.
func (c *Client) createProtected(ctx context.Context, q request, o *createOptions) (string, Stat, error) {
	asked := q.path
	var mark string
	if o.is(Ephemeral) {
		// A znode of an earlier session isn't ours, and the server deletes it.
		v, err := c.inThisSession(ctx)
		if err != nil {
			return "", Stat{}, restorePath(err, asked)
		}
		c = v
	}
	q.path, mark = protect(q.path)
	r := retrying{policy: c.retry, began: time.Now()}
	for {
		path, stat, err := c.createWithParents(ctx, q, o)
		if !errors.Is(err, ErrUnknownOutcome) {
			return path, stat, restorePath(err, asked)
		}
		if !errors.Is(err, ErrConnectionLoss) || !r.again(ctx) {
			c.deleteProtectedInBackground(q.path, mark)
			return "", Stat{}, restorePath(err, asked)
		}
		path, stat, found, ferr := c.findProtected(ctx, q.path, mark)
		switch {
		case ferr != nil:
			c.deleteProtectedInBackground(q.path, mark)
			return "", Stat{}, restorePath(err, asked)
		case found:
			return path, stat, nil
		}
	}
}

// restorePath sets the error's path to the one that the caller passed.
func restorePath(err error, path string) error {
	var e *Error
	if errors.As(err, &e) {
		e.Path = path
	}
	return err
}

// findProtected looks for the znode with a mark among the siblings. We sync first. The
// leader processes the sync after every request of the broken connection, so if the znode
// isn't there now, no earlier request can still create it.
func (c *Client) findProtected(ctx context.Context, path, mark string) (string, Stat, bool, error) {
	dir := proto.Parent(path)
	names, _, err := c.Children(ctx, dir, Linearizable)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return "", Stat{}, false, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, mark) {
			continue
		}
		found := joinPath(strings.TrimSuffix(dir, "/"), "/"+name)
		stat, ok, err := c.Exists(ctx, found)
		if err != nil || ok {
			return found, stat, ok, err
		}
	}
	return "", Stat{}, false, nil
}
