package election

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// Observe yields the current leader, and then again whenever the leader or the data that it
// has proclaimed changes. While there is no leader, it yields a Leader without a Path. It
// may combine changes that happen in quick succession. It ends when ctx ends, or after a
// permanent error, which it yields last. It survives the end of a session.
func (e *Election) Observe(ctx context.Context) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		var last *Leader
		for {
			now, err := e.next(ctx, last)
			switch {
			case ctx.Err() != nil:
				return
			case errors.Is(err, client.ErrSessionExpired):
				continue
			case err != nil:
				yield(Leader{}, err)
				return
			}
			if !yield(*now, nil) {
				return
			}
			last = now
		}
	}
}

// next waits until the leader differs from last.
func (e *Election) next(ctx context.Context, last *Leader) (*Leader, error) {
	for {
		s, err := e.conn.Session(ctx)
		if err != nil {
			return nil, err
		}
		now, w, err := e.watch(ctx, s)
		if err != nil {
			return nil, err
		}
		if last == nil || now.Path != last.Path || !bytes.Equal(now.Data, last.Data) {
			recipe.Drop(ctx, w)
			return now, nil
		}
		select {
		case _, ok := <-w.Events():
			if !ok {
				return nil, client.ErrSessionExpired
			}
		case <-ctx.Done():
			recipe.Drop(ctx, w)
			return nil, context.Cause(ctx)
		}
	}
}

// watch returns the leader and a watch that fires when the leader goes or changes. If
// there is no leader, the watch fires when the line changes.
func (e *Election) watch(ctx context.Context, s recipes.Session) (*Leader, recipes.Watch, error) {
	for {
		leader, err := e.Leader(ctx)
		if err == nil {
			var w recipes.Watch
			leader.Data, _, w, err = s.GetW(ctx, leader.Path)
			if errors.Is(err, client.ErrNoNode) {
				continue
			}
			return &leader, w, err
		}
		if !errors.Is(err, ErrNoLeader) {
			return nil, nil, err
		}
		names, _, w, err := s.ChildrenW(ctx, e.path)
		if errors.Is(err, client.ErrNoNode) {
			var there bool
			if _, there, w, err = s.ExistsW(ctx, e.path); err == nil && there {
				recipe.Drop(ctx, w)
				continue
			}
		}
		if err != nil {
			return nil, nil, err
		}
		if len(names) == 0 {
			return &Leader{}, w, nil
		}
		// Either a candidate has joined in the meantime, or the children don't use our
		// layout.
		_, err = e.Leader(ctx)
		if errors.Is(err, ErrNoLeader) {
			return &Leader{}, w, nil
		}
		recipe.Drop(ctx, w)
		if err != nil {
			return nil, nil, err
		}
	}
}
