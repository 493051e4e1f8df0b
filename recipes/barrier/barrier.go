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

// Close closes the gate, if it is open. It stays closed when the client that closed it
// is gone. Close waits for a lost connection to come back.
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

// Open opens the gate, if it is closed: every waiter goes on. Open waits for a lost
// connection to come back.
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

// Wait waits until the gate is open, or ctx ends. A gate that was opened during the
// call and closed again counts as open: every opening lets all waiters pass. Neither a
// lost connection nor a session that ends is an error.
func (b *Barrier) Wait(ctx context.Context) error {
	var closed int64 // czxid of the znode that this call waits for
	err := recipes.InSession(ctx, b.conn, func(s recipes.Session) error {
		for {
			// Reading leaves no watch on a znode that is not there.
			_, stat, w, err := s.GetW(ctx, b.path)
			if errors.Is(err, client.ErrNoNode) {
				return nil
			}
			if err != nil {
				return err
			}
			if closed != 0 && stat.Czxid != closed {
				recipes.Drop(ctx, w)
				return nil
			}
			closed = stat.Czxid
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
