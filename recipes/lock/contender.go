package lock

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// patience is how long a failed Acquire waits for its znode to be deleted before we
// continue in the background.
const patience = 500 * time.Millisecond

// retryRemoval is the pause between two attempts to delete a znode.
const retryRemoval = 100 * time.Millisecond

// contender is one place in a line: one znode in one session.
type contender struct {
	session recipes.Session
	dir     string
	mark    string // unique prefix of the znode's name
	name    string // the znode's name, or "" while it is not known to exist
	// fixed is the znode's name if all contenders use the same name. Then mark is the
	// prefix of its data, and born distinguishes it from the znodes of others once
	// the lock is held.
	fixed string
	born  int64 // zxid that created the znode, or 0 until the lock is held
}

// ours reports whether a znode that has the contender's name belongs to the
// contender.
func (c *contender) ours(data []byte, stat client.Stat) bool {
	switch {
	case c.fixed == "":
		return true
	case stat.EphemeralOwner != c.session.ID():
		return false
	case c.born != 0: // by then the data may have been replaced
		return stat.Czxid == c.born
	}
	return bytes.HasPrefix(data, []byte(c.mark))
}

// forget makes the next delete check which client owns the znode, if the name alone doesn't
// tell us.
func (c *contender) forget() {
	if c.fixed != "" {
		c.name = ""
	}
}

func (c *contender) path() string { return recipe.Join(c.dir, c.name) }

// enter creates a znode at the end of a line. If enter fails, either there is no znode or we
// are removing it.
func enter(ctx context.Context, conn recipes.Conn, dir, infix string, cfg *config) (*contender, error) {
	s, err := conn.Session(ctx)
	if err != nil {
		return nil, err
	}
	c := &contender{session: s, dir: dir, mark: cfg.layout.mark()}
	for {
		created, err := s.Create(ctx, recipe.Join(dir, c.mark+infix), cfg.data, recipes.EphemeralSequential, cfg.acl)
		switch {
		case err == nil:
			c.name = nameOf(created)
			return c, nil
		case errors.Is(err, client.ErrNoNode):
			if err := recipes.EnsureContainers(ctx, s, dir); err != nil {
				return nil, err
			}
		case !errors.Is(err, client.ErrUnknownOutcome):
			if !recipes.Again(ctx, err) {
				return nil, err
			}
		default:
			// The znode may exist. If we can't find out, remove must clean it up.
			found, err := c.settle(ctx, err)
			if err != nil {
				c.remove()
				return nil, err
			}
			if found {
				return c, nil
			}
		}
	}
}

// enterBeside creates a znode with the same number as the holder's. We let the server check
// in the same transaction that the holder's znode at holder exists, because otherwise
// another client could hold the lock by then.
func enterBeside(ctx context.Context, s recipes.Session, holder, dir, infix string, cfg *config) (*contender, error) {
	c := &contender{session: s, dir: dir, mark: cfg.layout.mark()}
	for {
		err := s.Multi(ctx,
			recipes.Op{Kind: recipes.OpCheck, Path: holder, Version: client.AnyVersion},
			recipes.Op{Kind: recipes.OpCreate, Path: recipe.Join(dir, c.mark+infix), Data: cfg.data, Mode: recipes.Ephemeral, ACL: cfg.acl})
		switch {
		case err == nil:
			c.name = c.mark + infix
			return c, nil
		case errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil:
			found, err := c.settle(ctx, err)
			if err != nil {
				c.remove()
				return nil, err
			}
			if found {
				return c, nil
			}
		default:
			c.remove()
			return nil, err
		}
	}
}

// settle reports whether the znode exists after a create with an unknown outcome. If it
// can't find out, it returns unknown. If the session has ended, the znode is gone, and
// settle returns [client.ErrSessionExpired].
func (c *contender) settle(ctx context.Context, unknown error) (bool, error) {
	found, err := c.find(ctx)
	if err != nil && !errors.Is(err, client.ErrSessionExpired) {
		err = unknown
	}
	return found, err
}

// find looks for the znode by its mark. We sync first, so that the server knows everything
// that happened on an earlier connection.
func (c *contender) find(ctx context.Context) (bool, error) {
	if err := c.session.Sync(ctx, c.dir); err != nil {
		return false, err
	}
	search := c.byMark
	if c.fixed != "" {
		search = c.byData
	}
	var err error
	c.name, err = search(ctx)
	return c.name != "", err
}

func (c *contender) byData(ctx context.Context) (string, error) {
	data, stat, err := c.session.Get(ctx, recipe.Join(c.dir, c.fixed))
	switch {
	case err == nil && c.ours(data, stat):
		return c.fixed, nil
	case errors.Is(err, client.ErrNoNode):
		err = nil
	}
	return "", err
}

func (c *contender) byMark(ctx context.Context) (string, error) {
	names, _, err := c.session.Children(ctx, c.dir)
	if err != nil && !errors.Is(err, client.ErrNoNode) {
		return "", err
	}
	for _, name := range names {
		if strings.HasPrefix(name, c.mark) {
			return name, nil
		}
	}
	return "", nil
}

// delete tries to delete the znode once.
func (c *contender) delete(ctx context.Context) error {
	if c.name == "" {
		if found, err := c.find(ctx); err != nil || !found {
			return err
		}
	}
	err := c.session.Delete(ctx, c.path(), client.AnyVersion)
	if gone(err) {
		return nil
	}
	// The znode may have been deleted. The next attempt must find it again: if the name
	// is not unique, the znode may belong to another client by then.
	c.name = ""
	return err
}

// gone reports whether the znode no longer exists after a delete.
func gone(err error) bool {
	return err == nil || errors.Is(err, client.ErrNoNode) ||
		errors.Is(err, client.ErrSessionExpired) || errors.Is(err, client.ErrClosed) // the znode disappears with the session
}

// remove deletes the znode in the background. We retry until the znode is gone, the session
// has ended, the client is closed, or the server refuses. remove itself waits for at most
// patience.
func (c *contender) remove() {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			err := c.delete(context.Background())
			if err == nil || !unanswered(err) {
				return
			}
			time.Sleep(retryRemoval)
		}
	}()
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// unanswered reports whether an operation got no reply, so that it is worth trying
// again.
func unanswered(err error) bool {
	if errors.Is(err, client.ErrClosed) {
		return false
	}
	for _, again := range []error{client.ErrConnectionLoss, client.ErrUnknownOutcome, client.ErrThrottledOp, client.ErrNotReadOnly} {
		if errors.Is(err, again) {
			return true
		}
	}
	return false
}

// nameOf returns the last part of a path.
func nameOf(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }
