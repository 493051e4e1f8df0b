package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// simplePrefix is the prefix of the names of a Simple queue's items.
const simplePrefix = "qn-"

// Simple is a queue of plain data. It removes an item when a client gets the item: if the
// client fails while it processes an item, the item is lost. It is Curator's
// SimpleDistributedQueue and the queue of ZooKeeper's own recipes. All methods are safe for
// concurrent use. If the connection or the session is lost, they wait for the next one,
// except as documented.
type Simple struct{ l line }

// NewSimple returns the queue at path. It supports only the options WithACL and
// WithMaxItems.
func NewSimple(conn recipes.Conn, path string, opts ...Option) *Simple {
	return &Simple{newLine(conn, path, byName, opts)}
}

// Offer adds an item, like [Queue.Put].
func (q *Simple) Offer(ctx context.Context, data []byte) error {
	return q.l.add(ctx, simplePrefix, data)
}

// Peek returns the first item without removing it, or [ErrEmpty].
func (q *Simple) Peek(ctx context.Context) ([]byte, error) { return q.head(ctx, false, false) }

// Poll removes the first item and returns it, or [ErrEmpty]. If we don't know whether this
// call removed the item, Poll returns the item with an error that matches
// [client.ErrUnknownOutcome].
func (q *Simple) Poll(ctx context.Context) ([]byte, error) { return q.head(ctx, true, false) }

// Len returns the number of items.
func (q *Simple) Len(ctx context.Context) (int, error) { return q.l.Len(ctx) }

// Take is like Poll but waits for an item.
func (q *Simple) Take(ctx context.Context) ([]byte, error) { return q.head(ctx, true, true) }

func (q *Simple) head(ctx context.Context, remove, wait bool) ([]byte, error) {
	for {
		data, ok, err := q.attempt(ctx, remove, wait)
		switch {
		case ok || err != nil && !errors.Is(err, client.ErrSessionExpired):
			if err != nil {
				err = q.l.failure(err)
			}
			return data, err
		case err == nil && !wait:
			return nil, q.l.failure(ErrEmpty)
		}
	}
}

// attempt tries once. It reports false if there was no item.
func (q *Simple) attempt(ctx context.Context, remove, wait bool) (data []byte, ok bool, err error) {
	s, err := q.l.conn.Session(ctx)
	if err != nil {
		return nil, false, err
	}
	var r rest
	names, err := q.l.list(ctx, s, q.l.path, &r)
	if err != nil {
		return nil, false, err
	}
	slices.Sort(names)
	for _, name := range names {
		if !strings.HasPrefix(name, simplePrefix) {
			continue
		}
		data, ok, err = q.get(ctx, s, recipe.Join(q.l.path, name), remove)
		if ok || err != nil {
			recipe.Drop(ctx, r.watches...)
			return data, ok, err
		}
	}
	if wait {
		return nil, false, await(ctx, time.Time{}, r.watches...)
	}
	recipe.Drop(ctx, r.watches...)
	return nil, false, nil
}

// get reads an item and may remove it. It reports false if another client was faster.
func (q *Simple) get(ctx context.Context, s recipes.Session, path string, remove bool) ([]byte, bool, error) {
	data, _, err := s.Get(ctx, path)
	for err == nil && remove {
		err = s.Delete(ctx, path, client.AnyVersion)
		if err == nil {
			break
		}
		if errors.Is(err, client.ErrUnknownOutcome) {
			// If the item still exists after a sync, it was not removed.
			there, serr := false, s.Sync(ctx, path)
			if serr == nil {
				_, there, serr = s.Exists(ctx, path)
			}
			if serr != nil || !there {
				return data, true, fmt.Errorf("%s: %w", path, err)
			}
			err = nil
		} else if recipes.Again(ctx, err) {
			err = nil
		}
	}
	if errors.Is(err, client.ErrNoNode) {
		return nil, false, nil
	}
	return data, err == nil, err
}
