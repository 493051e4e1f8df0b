package barrier

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// CountDownLatch opens when it has been counted down a number of times, by
// whomever, and stays open. All methods are safe for concurrent use.
type CountDownLatch struct {
	conn  recipes.Conn
	path  string
	count int
}

// NewCountDownLatch returns the latch at path, a directory in which each count
// leaves a znode. All who use it have to agree about count.
func NewCountDownLatch(conn recipes.Conn, path string, count int) *CountDownLatch {
	return &CountDownLatch{conn, path, count}
}

// CountDown counts once. It counts exactly once, also when the connection breaks or
// the session ends meanwhile; if ctx ends first, it may or may not have counted, and
// the error matches [client.ErrUnknownOutcome] if it may.
func (l *CountDownLatch) CountDown(ctx context.Context) error {
	// One name for all tries: a second one finds the first.
	path := recipes.Join(l.path, "count-"+rand.Text())
	err := recipes.InSession(ctx, l.conn, func(s recipes.Session) error {
		_, err := s.Create(ctx, path, nil, recipes.Persistent, nil)
		switch {
		case errors.Is(err, client.ErrNodeExists):
			return nil
		case errors.Is(err, client.ErrNoNode):
			if err = recipes.EnsureContainers(ctx, s, l.path); err == nil {
				err = client.ErrConnectionLoss // once more
			}
		}
		return err
	})
	return l.failure(err)
}

// Wait waits until the latch is open, or ctx ends. Neither a lost connection nor a
// session that ends is an error.
func (l *CountDownLatch) Wait(ctx context.Context) error {
	err := recipes.InSession(ctx, l.conn, func(s recipes.Session) error {
		for {
			n, w, err := l.watch(ctx, s)
			if err != nil {
				return err
			}
			if n >= l.count {
				recipes.Drop(ctx, w)
				return nil
			}
			if err := recipes.Await(ctx, w); err != nil {
				return err
			}
		}
	})
	return l.failure(err)
}

// Left returns how many counts are missing, as the server knows that it asks. A lost
// connection is waited out.
func (l *CountDownLatch) Left(ctx context.Context) (int, error) {
	left := 0
	err := recipes.InSession(ctx, l.conn, func(s recipes.Session) error {
		names, _, err := s.Children(ctx, l.path)
		if errors.Is(err, client.ErrNoNode) {
			err = nil
		}
		left = max(0, l.count-len(names))
		return err
	})
	return left, l.failure(err)
}

// watch returns how often it was counted, and a watch for the next count.
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
		recipes.Drop(ctx, w)
	}
}

func (l *CountDownLatch) failure(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("latch %s: %w", l.path, err)
}
