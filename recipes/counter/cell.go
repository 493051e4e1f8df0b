package counter

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// cell is a znode with a value.
type cell struct {
	conn recipes.Conn
	path string
	acl  []client.ACL
}

// content is the content of a cell when it was read.
type content struct {
	session recipes.Session // session of the read
	there   bool
	data    []byte
	stat    client.Stat
}

func (c cell) failure(err error) error { return fmt.Errorf("value %s: %w", c.path, err) }

// read returns the content, including every write that completed before the call.
func (c cell) read(ctx context.Context) (now content, err error) {
	err = recipe.InSession(ctx, c.conn, func(s recipes.Session) error {
		if err := s.Sync(ctx, c.path); err != nil {
			return err
		}
		now, err = c.look(ctx, s)
		return err
	})
	return now, err
}

// look reads without a sync.
func (c cell) look(ctx context.Context, s recipes.Session) (content, error) {
	data, stat, err := s.Get(ctx, c.path)
	if errors.Is(err, client.ErrNoNode) {
		return content{session: s}, nil
	}
	return content{session: s, there: true, data: data, stat: stat}, err
}

// replace tries once to replace the content old. It reports false if the write did not
// happen because another client was faster or the request was lost.
func (c cell) replace(ctx context.Context, old content, data []byte) (client.Stat, bool, error) {
	var stat client.Stat
	var err error
	if old.there {
		stat, err = recipe.Replace(ctx, old.session, c.path, data, old.stat)
	} else {
		_, err = old.session.Create(ctx, c.path, data, recipes.Persistent, c.acl)
		if errors.Is(err, client.ErrNoNode) {
			err = recipes.EnsureContainers(ctx, old.session, recipe.Parent(c.path))
			if err == nil || errors.Is(err, client.ErrSessionExpired) {
				return stat, false, nil
			}
			return stat, false, err
		}
	}
	switch {
	case err == nil:
		return stat, true, nil
	case errors.Is(err, client.ErrUnknownOutcome):
		return stat, false, c.settle(ctx, old, err)
	case errors.Is(err, client.ErrBadVersion), errors.Is(err, client.ErrNoNode), errors.Is(err, client.ErrNodeExists),
		errors.Is(err, client.ErrSessionExpired), recipes.Again(ctx, err):
		return stat, false, nil
	}
	return stat, false, err
}

// settle returns nil if we know that a write did not happen and never will: after a sync,
// the znode is unchanged.
func (c cell) settle(ctx context.Context, old content, unknown error) error {
	now, err := c.read(ctx)
	if err != nil {
		return unknown
	}
	if now.there == old.there && now.stat.Mzxid == old.stat.Mzxid {
		return nil
	}
	return unknown
}
