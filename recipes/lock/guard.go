package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// guard monitors a grant that depends on an ephemeral znode. It ends the grant when we
// can't rely on the session any more, and when the znode is deleted.
type guard struct {
	*grant
	c    *contender
	hold recipes.Hold
}

// grantTo verifies that a contender that is first in line holds the lock: its znode exists
// and belongs to the session, and the leader confirms the session after we have read that.
func grantTo(ctx context.Context, c *contender, cfg *config) (*grant, error) {
	data, stat, w, err := c.session.GetW(ctx, c.path())
	switch {
	case errors.Is(err, client.ErrNoNode):
		return nil, errVanished
	case err != nil:
		return nil, err
	case stat.EphemeralOwner != c.session.ID(), !c.ours(data, stat):
		recipe.Drop(ctx, w)
		return nil, fmt.Errorf("the znode %s is another's, of session 0x%x: %w", c.path(), stat.EphemeralOwner, errVanished)
	}
	c.born = stat.Czxid
	hold, err := c.session.Hold(ctx, cfg.policy)
	if err != nil {
		recipe.Drop(ctx, w)
		return nil, err
	}
	g := &guard{grant: newGrant(c.path(), Token(stat.Czxid)), c: c, hold: hold}
	g.grant.session = func(context.Context) (recipes.Session, error) { return c.session, nil }
	g.valid, g.deadline, g.finish = hold.Err, hold.Deadline, g.leave
	if string(data) == revoked { // requested while the contender waited
		g.askedToRevoke()
	}
	go g.run(w)
	return g.grant, nil
}

// leave deletes the znode, in the background if the first attempt fails.
func (g *guard) leave(ctx context.Context) error {
	g.hold.Release()
	if g.gone {
		return nil
	}
	if g.lost() {
		g.c.forget()
	}
	err := g.c.delete(ctx)
	if err != nil {
		go g.c.remove()
	}
	return err
}

// run returns when the grant ends.
func (g *guard) run(w recipes.Watch) {
	defer close(g.ended)
	for w != nil {
		select {
		case <-g.hold.Done():
			g.lose(g.hold.Err())
			recipe.Drop(context.Background(), w)
			return
		case <-g.stop:
			return // the watch is removed with the znode
		case _, ok := <-w.Events():
			if !ok {
				g.lose(client.ErrSessionExpired)
				return
			}
		}
		w = g.look()
	}
}

// look reads the znode after its watch has fired, and sets the next watch.
func (g *guard) look() recipes.Watch {
	ctx, cancel := g.whileHeld()
	defer cancel()
	data, _, w, err := g.c.session.GetW(ctx, g.path)
	switch {
	case errors.Is(err, client.ErrNoNode):
		g.lose(errVanished)
		return nil
	case err != nil:
		if held := g.hold.Err(); held != nil {
			err = held
		}
		g.lose(err) // no effect if the grant was released
		return nil
	}
	if string(data) == revoked {
		g.askedToRevoke()
	}
	return w
}

// whileHeld returns a context that ends with the grant.
func (g *guard) whileHeld() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		select {
		case <-g.stop:
		case <-g.hold.Done():
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
