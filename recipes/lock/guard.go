package lock

import (
	"context"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// guard watches over a grant that rests on an ephemeral znode: it ends the grant
// when the session can no longer be relied on, and when the znode goes.
type guard struct {
	*grant
	c    *contender
	hold recipes.Hold
}

// standing is what a contender's znode said when it was read, which holds until the
// watch fires.
type standing struct {
	data []byte
	stat client.Stat
	w    recipes.Watch
}

// stand reads the znode, which has to belong to the session, and watches it.
func (c *contender) stand(ctx context.Context) (*standing, error) {
	data, stat, w, err := c.session.GetW(ctx, c.path())
	switch {
	case errors.Is(err, client.ErrNoNode):
		return nil, errVanished
	case err != nil:
		return nil, err
	case stat.EphemeralOwner != c.session.ID(), !c.ours(data, stat):
		recipes.Drop(ctx, w)
		return nil, fmt.Errorf("the znode %s is another's, of session 0x%x: %w", c.path(), stat.EphemeralOwner, errVanished)
	}
	return &standing{data, stat, w}, nil
}

// changed reports whether what is said of the znode has to be read again.
func (own *standing) changed() bool {
	select {
	case <-own.w.Events():
		return true
	default:
		return false
	}
}

// await waits until the znode at ahead changes, and not at all if it is not there, or until
// the contender's own does. That one has to be read and watched by who holds the lock: who
// waits for it has the time, and when the turn comes the lock lies idle for one answer less.
// own is what was read before; it returns what is so now, nil if that has changed.
//
// The watch of the own znode goes with that znode.
func (c *contender) await(ctx context.Context, own *standing, ahead string) (*standing, error) {
	_, _, w, err := c.session.GetW(ctx, ahead)
	if errors.Is(err, client.ErrNoNode) {
		return own, nil
	}
	if err == nil && own == nil {
		if own, err = c.stand(ctx); err != nil {
			recipes.Drop(ctx, w)
		}
	}
	if err != nil {
		return nil, err
	}
	select {
	case _, ok := <-w.Events():
		if !ok {
			return nil, client.ErrSessionExpired
		}
		return own, nil
	case <-own.w.Events():
		recipes.Drop(ctx, w)
		return nil, nil
	case <-ctx.Done():
		recipes.Drop(ctx, w)
		return nil, context.Cause(ctx)
	}
}

// grantTo makes sure that a contender who is first in line holds the lock: its
// znode is there and belongs to the session, and after that the leader confirmed
// the session. own, unless nil, is what the znode said while it waited.
func grantTo(ctx context.Context, c *contender, own *standing, cfg *config) (*grant, error) {
	if own == nil || own.changed() {
		var err error
		if own, err = c.stand(ctx); err != nil {
			return nil, err
		}
	}
	c.born = own.stat.Czxid
	hold, err := c.session.Hold(ctx, cfg.policy)
	if err != nil {
		recipes.Drop(ctx, own.w)
		return nil, err
	}
	g := &guard{grant: newGrant(c.path(), Token(own.stat.Czxid)), c: c, hold: hold}
	g.grant.session = func(context.Context) (recipes.Session, error) { return c.session, nil }
	g.valid, g.deadline, g.finish = hold.Err, hold.Deadline, g.leave
	if string(own.data) == revoked { // while it waited
		g.askedToRevoke()
	}
	go g.run(own.w)
	return g.grant, nil
}

// leave deletes the znode, in the background if it must be.
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

// run ends with the grant.
func (g *guard) run(w recipes.Watch) {
	defer close(g.ended)
	for w != nil {
		select {
		case <-g.hold.Done():
			g.lose(g.hold.Err())
			recipes.Drop(context.Background(), w)
			return
		case <-g.stop:
			return // the watch goes with the znode
		case _, ok := <-w.Events():
			if !ok {
				g.lose(client.ErrSessionExpired)
				return
			}
		}
		w = g.look()
	}
}

// look reads the znode after its watch has fired, and sets the next one.
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
		g.lose(err) // which means nothing if it was released
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
