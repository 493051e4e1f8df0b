package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// Option configures a queue.
type Option func(*line)

// WithClaims sets the directory of the consumers' claims: Curator's lock path. All
// consumers must use the same directory. By default it is the queue's path followed
// by "-claims".
func WithClaims(path string) Option { return func(l *line) { l.claims = path } }

// WithMaxItems makes producers wait while the queue has n or more items. Each concurrent
// producer can exceed this limit by one item, because we don't lock the queue.
func WithMaxItems(n int) Option { return func(l *line) { l.limit = n } }

// WithACL sets the ACL of items and claims.
func WithACL(acl ...client.ACL) Option { return func(l *line) { l.acl = acl } }

// line is the common part of all queues.
type line struct {
	conn   recipes.Conn
	path   string
	claims string
	limit  int // 0 means no limit
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

// Queue is a first-in, first-out queue: Curator's DistributedQueue. All methods are
// safe for concurrent use.
//
// If the connection or the session is lost, the methods wait for the next one, except as
// documented: see Put, and [Item] for claimed items. If the server refuses a request, the
// method returns its error, e.g. [client.ErrNoAuth].
type Queue struct{ line }

// New returns the queue at path.
func New(conn recipes.Conn, path string, opts ...Option) *Queue {
	return &Queue{newLine(conn, path, byName, opts)}
}

// Put adds an item of one or more values, which one consumer gets together. It waits while
// the queue is full. If the reply is lost, the error matches [client.ErrUnknownOutcome].
func (q *Queue) Put(ctx context.Context, values ...[]byte) error { return q.put(ctx, "", values) }

// Priority is Curator's DistributedPriorityQueue: the item with the lowest number is
// first. For concurrent use and failures, see [Queue].
type Priority struct{ line }

// NewPriority returns the queue at path.
func NewPriority(conn recipes.Conn, path string, opts ...Option) *Priority {
	return &Priority{newLine(conn, path, byName, opts)}
}

// Put adds an item, like [Queue.Put].
func (q *Priority) Put(ctx context.Context, priority int32, values ...[]byte) error {
	return q.put(ctx, priorityInfix(priority), values)
}

// Delay is Curator's DistributedDelayQueue: an item becomes available at its time,
// according to the consumers' clocks, and the earliest is first. For concurrent use and
// failures, see [Queue].
type Delay struct{ line }

// NewDelay returns the queue at path.
func NewDelay(conn recipes.Conn, path string, opts ...Option) *Delay {
	return &Delay{newLine(conn, path, byDelay, opts)}
}

// Put adds an item, like [Queue.Put]. The resolution of the time is one millisecond.
func (q *Delay) Put(ctx context.Context, until time.Time, values ...[]byte) error {
	return q.put(ctx, delayInfix(until), values)
}

// ID is Curator's DistributedIdQueue: a first-in, first-out queue. Its items have ids, which
// need not be unique, and can be removed by id. For concurrent use and failures, see
// [Queue].
type ID struct{ line }

// NewID returns the queue at path.
func NewID(conn recipes.Conn, path string, opts ...Option) *ID {
	return &ID{newLine(conn, path, byID, opts)}
}

// Put adds an item, like [Queue.Put]. It replaces slashes and bars in an id with
// underscores.
func (q *ID) Put(ctx context.Context, id string, values ...[]byte) error {
	return q.put(ctx, idInfix(id), values)
}

// Remove removes all unclaimed items with an id, and returns how many it has removed.
func (q *ID) Remove(ctx context.Context, id string) (int, error) {
	removed := 0
	for {
		item, r, err := q.scan(ctx, func(name string) bool { _, have, _ := cut(name); return have == cleanID(id) })
		if err == nil && item == nil {
			recipe.Drop(ctx, r.watches...)
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
			_, err = s.Create(ctx, recipe.Join(l.path, name), data, recipes.PersistentSequential, l.acl)
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
			recipe.Drop(ctx, w)
			return nil
		}
		if err := await(ctx, time.Time{}, w); err != nil {
			return err
		}
	}
	return nil
}

// ensure creates the two directories if they are missing. The directory of the items
// is persistent, like Curator's.
func (l *line) ensure(ctx context.Context, s recipes.Session) error {
	if err := recipes.EnsureContainers(ctx, s, l.claims); err != nil {
		return err
	}
	if err := recipes.EnsureContainers(ctx, s, recipe.Parent(l.path)); err != nil {
		return err
	}
	_, err := s.Create(ctx, l.path, nil, recipes.Persistent, nil)
	if errors.Is(err, client.ErrNodeExists) || errors.Is(err, client.ErrNoNode) || errors.Is(err, client.ErrUnknownOutcome) && ctx.Err() == nil {
		return nil // the caller will check again
	}
	return err
}

// Len returns the number of items, including claimed ones.
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
