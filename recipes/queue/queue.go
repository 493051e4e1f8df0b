package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// Option changes a queue.
type Option func(*line)

// WithClaims sets the directory of the consumers' claims: Curator's lock path.
// All consumers have to agree about it. By default it is the queue's path and
// "-claims".
func WithClaims(path string) Option { return func(l *line) { l.claims = path } }

// WithMaxItems has producers wait while there are n items or more. Producers that
// come at one time can bring it above that by one each.
func WithMaxItems(n int) Option { return func(l *line) { l.limit = n } }

// WithACL sets the ACL of items and claims.
func WithACL(acl ...client.ACL) Option { return func(l *line) { l.acl = acl } }

// line is what all queues have in common.
type line struct {
	conn   recipes.Conn
	path   string
	claims string
	limit  int // 0: none
	acl    []client.ACL
	order  order
}

func newLine(conn recipes.Conn, path string, o order, opts []Option) line {
	l := line{conn: conn, path: path, claims: path + "-claims", order: o}
	for _, opt := range opts {
		opt(&l)
	}
	return l
}

// Queue is first in, first out: Curator's DistributedQueue. All methods are safe for
// concurrent use.
//
// A lost connection or a session that ends is waited out, but for what the methods
// say: see Put, and [Item] for what was taken. Refusals of the server are errors, for
// instance [client.ErrNoAuth].
type Queue struct{ line }

// New returns the queue at path.
func New(conn recipes.Conn, path string, opts ...Option) *Queue {
	return &Queue{newLine(conn, path, byName, opts)}
}

// Put adds an item of one or more values, which are taken together. It waits while
// the queue is full. If its answer is lost the error matches
// [client.ErrUnknownOutcome].
func (q *Queue) Put(ctx context.Context, values ...[]byte) error { return q.put(ctx, "", values) }

// Priority is Curator's DistributedPriorityQueue: the lowest number first.
// As for concurrent use and failures it is as [Queue].
type Priority struct{ line }

// NewPriority returns the queue at path.
func NewPriority(conn recipes.Conn, path string, opts ...Option) *Priority {
	return &Priority{newLine(conn, path, byName, opts)}
}

// Put is as that of [Queue].
func (q *Priority) Put(ctx context.Context, priority int32, values ...[]byte) error {
	return q.put(ctx, priorityInfix(priority), values)
}

// Delay is Curator's DistributedDelayQueue: items are there from their time on, by
// the consumers' clocks, the earliest first.
// As for concurrent use and failures it is as [Queue].
type Delay struct{ line }

// NewDelay returns the queue at path.
func NewDelay(conn recipes.Conn, path string, opts ...Option) *Delay {
	return &Delay{newLine(conn, path, byDelay, opts)}
}

// Put is as that of [Queue]. The time counts in milliseconds.
func (q *Delay) Put(ctx context.Context, until time.Time, values ...[]byte) error {
	return q.put(ctx, delayInfix(until), values)
}

// ID is Curator's DistributedIdQueue: first in, first out, and items can be removed
// by their ids, which need not be unique.
// As for concurrent use and failures it is as [Queue].
type ID struct{ line }

// NewID returns the queue at path.
func NewID(conn recipes.Conn, path string, opts ...Option) *ID {
	return &ID{newLine(conn, path, byID, opts)}
}

// Put is as that of [Queue]. Slashes and bars in an id become underscores.
func (q *ID) Put(ctx context.Context, id string, values ...[]byte) error {
	return q.put(ctx, idInfix(id), values)
}

// Remove removes all items with an id that nobody has taken, and returns how many.
func (q *ID) Remove(ctx context.Context, id string) (int, error) {
	removed := 0
	for {
		item, r, err := q.scan(ctx, func(name string) bool { _, have, _ := cut(name); return have == cleanID(id) })
		if err == nil && item == nil {
			recipes.Drop(ctx, r.watches...)
			return removed, nil
		}
		if err == nil {
			if err = item.Ack(ctx); err == nil {
				removed++
			} else {
				item.giveUp()
			}
		}
		if err != nil && !errors.Is(err, client.ErrSessionExpired) && !errors.Is(err, ErrLost) {
			return removed, q.failure(err)
		}
	}
}

func (l *line) failure(err error) error { return fmt.Errorf("queue %s: %w", l.path, err) }

func (l *line) put(ctx context.Context, infix string, values [][]byte) error {
	return l.add(ctx, prefix+infix, encode(values))
}

// add creates an item's znode.
func (l *line) add(ctx context.Context, name string, data []byte) error {
	for {
		s, err := l.conn.Session(ctx)
		if err == nil {
			err = l.room(ctx, s)
		}
		if err == nil {
			_, err = s.Create(ctx, recipes.Join(l.path, name), data, recipes.PersistentSequential, l.acl)
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, client.ErrUnknownOutcome):
			return l.failure(err)
		case errors.Is(err, client.ErrNoNode):
			err = l.ensure(ctx, s)
		}
		if err != nil && !errors.Is(err, client.ErrSessionExpired) && !recipes.Again(ctx, err) {
			return l.failure(err)
		}
	}
}

// room waits until the queue is not full.
func (l *line) room(ctx context.Context, s recipes.Session) error {
	for l.limit > 0 {
		names, _, w, err := s.ChildrenW(ctx, l.path)
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(names) < l.limit {
			recipes.Drop(ctx, w)
			return nil
		}
		if err := await(ctx, time.Time{}, w); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates what is missing of the two directories. That of the items stays,
// as Curator's does.
func (l *line) ensure(ctx context.Context, s recipes.Session) error {
	if err := recipes.EnsureContainers(ctx, s, l.claims); err != nil {
		return err
	}
	if err := recipes.EnsureContainers(ctx, s, recipes.Parent(l.path)); err != nil {
		return err
	}
	_, err := s.Create(ctx, l.path, nil, recipes.Persistent, nil)
	if errors.Is(err, client.ErrNodeExists) || errors.Is(err, client.ErrNoNode) || errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil {
		return nil // it is looked at again
	}
	return err
}

// Len returns the number of items, those that somebody has taken among them.
func (l *line) Len(ctx context.Context) (int, error) {
	for {
		s, err := l.conn.Session(ctx)
		if err != nil {
			return 0, l.failure(err)
		}
		names, _, err := s.Children(ctx, l.path)
		switch {
		case err == nil, errors.Is(err, client.ErrNoNode):
			return len(names), nil
		case !errors.Is(err, client.ErrSessionExpired):
			return 0, l.failure(err)
		}
	}
}

func isItem(name string) bool { return strings.HasPrefix(name, prefix) }
