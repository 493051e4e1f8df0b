package barrier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// Barrier is a gate: closed as long as a znode exists. All methods are safe for
// concurrent use.
type Barrier struct {
	conn recipes.Conn
	path string
}

// New returns the barrier at path.
func New(conn recipes.Conn, path string) *Barrier { return &Barrier{conn, path} }

// Close closes the gate, if it is open. It stays closed when its client is gone.
// A connection that breaks is waited for.
func (b *Barrier) Close(ctx context.Context) error {
	err := recipes.InSession(ctx, b.conn, func(s recipes.Session) error {
		_, err := s.Create(ctx, b.path, nil, recipes.Persistent, nil)
		switch {
		case errors.Is(err, client.ErrNodeExists):
			return nil
		case errors.Is(err, client.ErrNoNode):
			if err = recipes.EnsureContainers(ctx, s, recipes.Parent(b.path)); err == nil {
				err = client.ErrConnectionLoss // once more
			}
		}
		return err
	})
	return b.failure("close", err)
}

// Open opens the gate, if it is closed: everybody who waits goes on. A connection
// that breaks is waited for.
func (b *Barrier) Open(ctx context.Context) error {
	err := recipes.InSession(ctx, b.conn, func(s recipes.Session) error {
		err := s.Delete(ctx, b.path, client.AnyVersion)
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		return err
	})
	return b.failure("open", err)
}

// Wait waits until the gate is open, or ctx ends. Neither a lost connection nor a
// session that ends is an error.
func (b *Barrier) Wait(ctx context.Context) error {
	err := recipes.InSession(ctx, b.conn, func(s recipes.Session) error {
		for {
			// Reading leaves no watch on a znode that is not there.
			_, _, w, err := s.GetW(ctx, b.path)
			if errors.Is(err, client.ErrNoNode) {
				return nil
			}
			if err != nil {
				return err
			}
			if err := recipes.Await(ctx, w); err != nil {
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

// patience is how long what has to be cleaned up waits for a server.
const patience = 500 * time.Millisecond
