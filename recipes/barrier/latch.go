package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// CountDownLatch opens when clients have counted it down a given number of times, and
// stays open. All methods are safe for concurrent use.
type CountDownLatch struct {
	conn  recipes.Conn
	path  string
	count int
}

// NewCountDownLatch returns the latch at path, a directory in which each count leaves
// a znode. All clients must use the same count.
func NewCountDownLatch(conn recipes.Conn, path string, count int) *CountDownLatch {
	return &CountDownLatch{conn, path, count}
}

// CountDown counts once. It counts exactly once, even if the connection breaks or the
// session ends in the meantime. If ctx ends first and CountDown may have counted, the error
// matches [client.ErrUnknownOutcome].
func (l *CountDownLatch) CountDown(ctx context.Context) error {
	// We use the same name for all attempts, so that a second attempt finds the znode of
	// the first.
	path := recipe.Join(l.path, "count-"+rand.Text())
	err := recipe.InSession(ctx, l.conn, func(s recipes.Session) error {
		_, err := s.Create(ctx, path, nil, recipes.Persistent, nil)
		switch {
		case errors.Is(err, client.ErrNodeExists):
			return nil
		case errors.Is(err, client.ErrNoNode):
			if err = recipes.EnsureContainers(ctx, s, l.path); err == nil {
				err = client.ErrConnectionLoss // retry the create
			}
		}
		return err
	})
	return l.failure(err)
}

// Wait waits until the latch is open or ctx ends. Wait survives a lost connection and the
// end of a session.
func (l *CountDownLatch) Wait(ctx context.Context) error {
	err := recipe.InSession(ctx, l.conn, func(s recipes.Session) error {
		for {
			n, w, err := l.watch(ctx, s)
			if err != nil {
				return err
			}
			if n >= l.count {
				recipe.Drop(ctx, w)
				return nil
			}
			if err := recipe.Await(ctx, w); err != nil {
				return err
			}
		}
	})
	return l.failure(err)
}

// Left returns how many counts are missing, according to the server that it asks. If the
// connection is lost, Left waits for the next one.
func (l *CountDownLatch) Left(ctx context.Context) (int, error) {
	left := 0
	err := recipe.InSession(ctx, l.conn, func(s recipes.Session) error {
		names, _, err := s.Children(ctx, l.path)
		if errors.Is(err, client.ErrNoNode) {
			err = nil
		}
		left = max(0, l.count-len(names))
		return err
	})
	return left, l.failure(err)
}

// watch returns the number of counts, and a watch for the next count.
func (l *CountDownLatch) watch(ctx context.Context, s recipes.Session) (int, recipes.Watch, error) {
	for {
		names, _, w, err := s.ChildrenW(ctx, l.path)
		if !errors.Is(err, client.ErrNoNode) {
			return len(names), w, err
		}
		_, there, w, err := s.ExistsW(ctx, l.path)
		if err != nil || !there {
			return 0, w, err
		}
		recipe.Drop(ctx, w)
	}
}

func (l *CountDownLatch) failure(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("latch %s: %w", l.path, err)
}
