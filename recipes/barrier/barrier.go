package barrier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// Barrier is a gate that is closed while its znode exists. All methods are safe for
// concurrent use.
type Barrier struct {
	conn recipes.Conn
	path string
}

// New returns the barrier at path.
func New(conn recipes.Conn, path string) *Barrier { return &Barrier{conn, path} }

// Close closes the gate, if it is open. The gate stays closed when the client that closed
// it is gone. If the connection is lost, Close waits for the next one.
func (b *Barrier) Close(ctx context.Context) error {
	err := recipe.InSession(ctx, b.conn, func(s recipes.Session) error {
		_, err := s.Create(ctx, b.path, nil, recipes.Persistent, nil)
		switch {
		case errors.Is(err, client.ErrNodeExists):
			return nil
		case errors.Is(err, client.ErrNoNode):
			if err = recipes.EnsureContainers(ctx, s, recipe.Parent(b.path)); err == nil {
				err = client.ErrConnectionLoss // retry the create
			}
		}
		return err
	})
	return b.failure("close", err)
}

// Open opens the gate, if it is closed, and releases all waiters. If the connection is
// lost, Open waits for the next one.
func (b *Barrier) Open(ctx context.Context) error {
	err := recipe.InSession(ctx, b.conn, func(s recipes.Session) error {
		err := s.Delete(ctx, b.path, client.AnyVersion)
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		return err
	})
	return b.failure("open", err)
}

// Wait waits until the gate is open or ctx ends. A gate that is opened and closed again
// during the call counts as open: every opening lets all waiters pass. Wait survives a lost
// connection and the end of a session.
func (b *Barrier) Wait(ctx context.Context) error {
	var closed int64 // czxid of the znode that this call waits for
	err := recipe.InSession(ctx, b.conn, func(s recipes.Session) error {
		for {
			// We set the watch with a read, because a read leaves no watch on a missing
			// znode.
			_, stat, w, err := s.GetW(ctx, b.path)
			if errors.Is(err, client.ErrNoNode) {
				return nil
			}
			if err != nil {
				return err
			}
			if closed != 0 && stat.Czxid != closed {
				recipe.Drop(ctx, w)
				return nil
			}
			closed = stat.Czxid
			if err := recipe.Await(ctx, w); err != nil {
				return err
			}
		}
	})
	return b.failure("wait", err)
}

func (b *Barrier) failure(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("barrier %s: %s: %w", b.path, what, err)
}

// patience is how long the cleanup waits for the server.
const patience = 500 * time.Millisecond
